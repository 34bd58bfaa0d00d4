from hedgerow.errata.erratum import Noted
NOTED: tuple[Noted, ...] = ()
