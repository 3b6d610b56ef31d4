"""Human-readable numbers."""

import numpy as np

_BINARY = ("bytes", "KiB", "MiB", "GiB", "TiB")


def amount(number: float) -> str:
    """Format a number with thousands separators.

    Example:
        >>> from snnjax.ipu.profiles import units
        >>> units.amount(1234567), units.amount(0.5)
        ('1,234,567', '0.5')
    """
    return f"{number:,}" if isinstance(number, int) else f"{number:,.4g}"


def size(count: float | np.integer) -> str:
    """Format a number of bytes with a binary unit.

    Example:
        >>> from snnjax.ipu.profiles import units
        >>> units.size(638976), units.size(12)
        ('624 KiB', '12 bytes')
    """
    unit, count = 0, float(count)
    while count >= 1024 and unit + 1 < len(_BINARY):
        count, unit = count / 1024, unit + 1
    digits = 0 if unit == 0 or count >= 100 else 1 if count >= 10 else 2
    return f"{count:.{digits}f} {_BINARY[unit]}"


def quantity(number: float, unit: str) -> str:
    """Format a quantity with a decimal prefix from nano upwards.

    Example:
        >>> from snnjax.ipu.profiles import units
        >>> units.quantity(0.000123, "s"), units.quantity(250.0, "W")
        ('123 us', '250 W')
    """
    scales = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
    factor, prefix = next(
        (scale for scale in scales if number >= scale[0]), scales[-1] if number else scales[0]
    )
    return f"{number / factor:.3g} {prefix}{unit}"


def percent(share: float) -> str:
    """Format a fraction as a percentage.

    Example:
        >>> from snnjax.ipu.profiles import units
        >>> units.percent(0.1234), units.percent(0.00012)
        ('12.3 %', '0.01 %')
    """
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else f"{100 * share:.2f} %"
