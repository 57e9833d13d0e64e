"""polyray: experiments on retrieval by people who use two languages."""

__version__ = "0.1.0"
