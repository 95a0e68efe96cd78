"""The value at a fraction of sorted values: the rules that quantiles follow.

Of n values in ascending order, counted from 1, and a fraction p:

- ``between``: interpolated at 1 + p * (n - 1);
- ``occurring``: the one at p * n, rounded up, p taken as the decimal number that was written;
- ``descending``: the same, with the values in falling order;
- ``binary``: the one at p * n, rounded up, p taken as the double it is, as Spark's sketch does.
"""

from typing import Literal

Rule = Literal["between", "occurring", "descending", "binary"]
