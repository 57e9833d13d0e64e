"""Small word lists for the rules: opposites, members of one series, and how to negate.

English, German and French; a language without a row here gets the other rules. Written for
polyray. A new language is one more :class:`WordLists`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

__all__ = ["WORDLISTS", "WordLists", "word_swaps"]


@dataclass(frozen=True, slots=True)
class WordLists:
    """The lists of one language, as text.

    ``opposites``: pairs ``a/b`` apart by spaces. ``endings``: what each side of ``inflected``
    pairs may end in, the same on both sides. ``series``: one list a line, any member for any other.
    ``auxiliaries``: verbs beside which a negation may stand; ``negation`` is set after one (in
    French around it). ``negated``: articles and pronouns with their negative forms, ``a/b``.
    """

    opposites: str
    series: str
    auxiliaries: str
    negation: str
    negated: str = ""
    inflected: str = ""
    endings: tuple[str, ...] = ("",)


_ENGLISH = WordLists(
    opposites="""
    more/less most/least first/last before/after early/late earlier/later new/old young/old
    large/small larger/smaller largest/smallest big/small bigger/smaller biggest/smallest high/low
    higher/lower highest/lowest long/short longer/shorter strong/weak stronger/weaker good/bad
    better/worse best/worst rich/poor fast/slow open/closed opened/closed opens/closes
    increase/decrease increased/decreased increases/decreases increasing/decreasing rise/fall
    rises/falls rose/fell rising/falling growth/decline grew/shrank win/lose wins/loses won/lost
    winner/loser victory/defeat success/failure accept/reject accepted/rejected accepts/rejects
    approved/rejected approve/reject support/oppose supports/opposes supported/opposed
    supporters/opponents allow/forbid allowed/forbidden permitted/banned legal/illegal
    public/private national/local domestic/foreign men/women man/woman boys/girls boy/girl
    father/mother son/daughter brother/sister husband/wife he/she his/her king/queen many/few
    everyone/nobody everything/nothing always/never often/rarely yesterday/tomorrow day/night
    morning/evening winter/summer inside/outside above/below over/under up/down left/right
    with/without for/against buy/sell buys/sells bought/sold import/export imports/exports
    start/end started/ended starts/ends begin/end began/ended enter/leave entered/left
    arrive/leave arrived/left arrival/departure true/false right/wrong possible/impossible
    likely/unlikely safe/dangerous war/peace friend/enemy friends/enemies guilty/innocent
    dead/alive remember/forget remembered/forgot love/hate loves/hates loved/hated hot/cold
    warm/cold full/empty light/dark heavy/light easy/difficult rural/urban majority/minority
    minimum/maximum attack/defence profit/loss profits/losses gain/loss gains/losses
    positive/negative employer/employee teacher/pupil buyer/seller
    """,
    series="""
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    second third fourth fifth sixth seventh eighth
    north south east west
    northern southern eastern western
    hundred thousand million billion
    hundreds thousands millions billions
    seconds minutes hours days weeks months years decades
    minute hour day week month year decade century
    red green blue yellow black white
    president minister chancellor mayor spokesman
    football tennis handball basketball cycling
    school hospital museum station factory airport
    """,
    auxiliaries="""
    is are was were has have had will would can could should must may might do does did
    """,
    negation="not",
    negated="any/no some/no",
)

_GERMAN = WordLists(
    opposites="""
    mehr/weniger vor/nach vorher/nachher früh/spät früher/später gestern/morgen immer/nie oft/selten
    viele/wenige vielen/wenigen alles/nichts jeder/niemand oben/unten links/rechts innen/außen
    innerhalb/außerhalb über/unter mit/ohne für/gegen drinnen/draußen tag/nacht morgen/abend
    sommer/winter krieg/frieden sieg/niederlage sieger/verlierer gewinn/verlust gewinne/verluste
    gewinnen/verlieren gewinnt/verliert gewann/verlor gewonnen/verloren erfolg/misserfolg
    steigen/sinken steigt/sinkt stieg/sank gestiegen/gesunken anstieg/rückgang zunahme/abnahme
    wachstum/rückgang erhöhen/senken erhöht/gesenkt erhöhte/senkte kaufen/verkaufen kauft/verkauft
    kaufte/verkaufte gekauft/verkauft beginnen/enden beginnt/endet begann/endete beginn/ende
    anfang/ende start/ende öffnen/schließen öffnet/schließt geöffnet/geschlossen
    annehmen/ablehnen angenommen/abgelehnt zustimmen/widersprechen befürworter/gegner
    unterstützen/bekämpfen unterstützt/bekämpft erlauben/verbieten erlaubt/verboten
    erlaubte/verbot lieben/hassen liebt/hasst kommen/gehen kommt/geht kam/ging finden/verlieren
    ankunft/abfahrt import/export freund/feind freunde/feinde mann/frau männer/frauen
    junge/mädchen jungen/mädchen vater/mutter sohn/tochter bruder/schwester könig/königin
    seine/ihre seiner/ihrer seinen/ihren seinem/ihrem mehrheit/minderheit
    maximum/minimum arbeitgeber/arbeitnehmer lehrer/schüler käufer/verkäufer stadt/land
    angriff/verteidigung wahrheit/lüge vorteil/nachteil vorteile/nachteile stärke/schwäche
    hoffnung/angst freiheit/zwang einnahmen/ausgaben
    """,
    series="""
    montag dienstag mittwoch donnerstag freitag samstag sonntag
    januar februar märz april mai juni juli august september oktober november dezember
    zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig vierzig fünfzig
    hundert tausend
    millionen milliarden
    norden süden osten westen
    sekunden minuten stunden tagen wochen monaten jahren jahrzehnten
    präsident minister kanzler bürgermeister sprecher
    fußball tennis handball basketball radsport
    schule fabrik bibliothek brücke kirche
    europa asien afrika amerika australien
    """,
    auxiliaries="""
    ist sind war waren hat haben hatte hatten wird werden wurde wurden kann können konnte konnten
    soll sollen sollte sollten muss müssen musste mussten will wollen wollte wollten darf dürfen
    """,
    negation="nicht",
    negated="ein/kein eine/keine einen/keinen einem/keinem einer/keiner eines/keines",
    inflected="""
    groß/klein größer/kleiner größt/kleinst neu/alt jung/alt lang/kurz länger/kürzer stark/schwach
    stärker/schwächer gut/schlecht besser/schlechter best/schlechtest reich/arm schnell/langsam
    höher/niedriger höchst/niedrigst erst/letzt vorig/nächst öffentlich/privat möglich/unmöglich
    wahrscheinlich/unwahrscheinlich sicher/gefährlich schuldig/unschuldig richtig/falsch
    wichtig/unwichtig leicht/schwer warm/kalt heiß/kalt voll/leer hell/dunkel legal/illegal
    positiv/negativ inländisch/ausländisch national/regional männlich/weiblich nördlich/südlich
    östlich/westlich einfach/schwierig bekannt/unbekannt früher/künftig ehemalig/künftig
    """,
    endings=("", "e", "er", "es", "en", "em"),
)

_FRENCH = WordLists(
    opposites="""
    plus/moins avant/après toujours/jamais souvent/rarement hier/demain tôt/tard beaucoup/peu
    avec/sans pour/contre sur/sous dedans/dehors dessus/dessous gauche/droite jour/nuit matin/soir
    guerre/paix victoire/défaite succès/échec hausse/baisse augmentation/diminution
    augmenter/diminuer augmente/diminue augmenté/diminué croissance/recul gagner/perdre
    gagne/perd gagné/perdu vainqueur/perdant gain/perte gains/pertes acheter/vendre achète/vend
    acheté/vendu commencer/finir commence/finit commencé/fini début/fin ouvrir/fermer ouvre/ferme
    ouvert/fermé ouverte/fermée ouverts/fermés accepter/refuser accepte/refuse accepté/refusé
    approuvé/rejeté adopté/rejeté adoptée/rejetée approuver/rejeter soutenir/combattre
    soutient/combat partisans/opposants autoriser/interdire autorisé/interdit autorise/interdit
    aimer/détester aime/déteste entrer/sortir arrivée/départ arriver/partir arrive/part
    importations/exportations ami/ennemi amis/ennemis homme/femme hommes/femmes garçon/fille
    garçons/filles père/mère fils/fille frère/soeur frère/sœur roi/reine il/elle ils/elles
    majorité/minorité maximum/minimum employeur/employé public/privé publique/privée
    publics/privés publiques/privées national/local nationale/locale grand/petit grande/petite
    grands/petits grandes/petites nouveau/ancien nouvelle/ancienne nouveaux/anciens
    nouvelles/anciennes jeune/vieux jeunes/vieux long/court longue/courte longs/courts
    fort/faible forte/faible forts/faibles fortes/faibles bon/mauvais bonne/mauvaise
    bons/mauvais bonnes/mauvaises meilleur/pire meilleure/pire meilleurs/pires riche/pauvre
    riches/pauvres rapide/lent rapides/lents haut/bas haute/basse hauts/bas premier/dernier
    première/dernière premiers/derniers premières/dernières prochain/dernier prochaine/dernière
    possible/impossible légal/illégal légale/illégale chaud/froid chaude/froide plein/vide
    facile/difficile faciles/difficiles vrai/faux vraie/fausse positif/négatif positive/négative
    supérieur/inférieur supérieure/inférieure intérieur/extérieur coupable/innocent
    connu/inconnu connue/inconnue recettes/dépenses avantage/inconvénient vendeur/acheteur
    avantages/inconvénients maire/ministre
    """,
    series="""
    lundi mardi mercredi jeudi vendredi samedi dimanche
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    deux trois quatre cinq six sept huit neuf dix onze douze vingt trente quarante cinquante
    cent mille
    millions milliards
    nord sud ouest
    secondes minutes heures jours semaines mois ans décennies
    président ministre chancelier maire porte-parole
    football tennis handball basket cyclisme
    hôpital aéroport entrepôt institut
    europe asie afrique amérique
    """,
    auxiliaries="""
    est sont était étaient sera seront ont avait avaient aura auront peut peuvent pouvait pourrait
    doit doivent devait devrait veut veulent voulait fait font
    """,
    negation="pas",
)

WORDLISTS: dict[str, WordLists] = {"en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH}
"""ISO 639-1 code -> its lists."""


@cache
def word_swaps(code: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Lower-cased word -> what may stand for it; ``kind``: ``opposites`` or ``series``.

    >>> word_swaps("de", "opposites")["große"], len(word_swaps("en", "series")["north"])
    (('kleine',), 3)
    """
    lists = WORDLISTS.get(code)
    found: dict[str, dict[str, None]] = {}
    if lists is None:
        return {}
    if kind == "series":
        for line in lists.series.splitlines():
            members = line.split()
            for word in members:
                found.setdefault(word, {}).update(dict.fromkeys(m for m in members if m != word))
    else:
        pairs = [pair.split("/") for pair in lists.opposites.split()]
        for pair in lists.inflected.split():
            first, second = pair.split("/")
            pairs += [[first + ending, second + ending] for ending in lists.endings]
        for first, second in pairs:
            found.setdefault(first, {})[second] = None
            found.setdefault(second, {})[first] = None
    return {word: tuple(others) for word, others in found.items()}
