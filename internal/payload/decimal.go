package payload

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a JSON number as digits, so that no sum loses any: the value is
// digits × 10^-scale.
type decimal struct {
	negative bool
	digits   string
	scale    int
}

// maxShift bounds how many zeros an exponent may spell out. Beyond it a sum is
// computed in floating point: 1e999999999 must not cost a gigabyte.
const maxShift = 4096

// parseDecimal reads a well-formed number. It reports false when the exponent is
// beyond maxShift.
func parseDecimal(text string) (decimal, bool) {
	d := decimal{}
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent := splitExponent(text)
	if exponent > maxShift || exponent < -maxShift {
		return d, false
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits, d.scale = whole+fraction, len(fraction)-int(exponent)
	if d.scale < 0 {
		d.digits += strings.Repeat("0", -d.scale)
		d.scale = 0
	}
	return d, true
}

// farExponent is beyond any exponent that is computed with, also where an int has 32
// bits.
const farExponent = 1 << 62

// splitExponent returns the exponent as a number from -farExponent to farExponent.
func splitExponent(text string) (mantissa string, exponent int64) {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return text, 0
	}
	n, err := strconv.ParseInt(text[i+1:], 10, 64)
	if err != nil {
		n = farExponent
		if text[i+1] == '-' {
			n = -farExponent
		}
	}
	return text[:i], max(-farExponent, min(farExponent, n))
}

func (d decimal) addDecimal(e decimal) decimal {
	scale := max(d.scale, e.scale)
	x := d.digits + strings.Repeat("0", scale-d.scale)
	y := e.digits + strings.Repeat("0", scale-e.scale)
	width := max(len(x), len(y))
	x = strings.Repeat("0", width-len(x)) + x
	y = strings.Repeat("0", width-len(y)) + y
	switch {
	case d.negative == e.negative:
		return decimal{negative: d.negative, digits: addDigits(x, y), scale: scale}
	case x >= y:
		return decimal{negative: d.negative, digits: subtractDigits(x, y), scale: scale}
	}
	return decimal{negative: e.negative, digits: subtractDigits(y, x), scale: scale}
}

// addDigits adds two digit strings of the same length.
func addDigits(x, y string) string {
	sum := make([]byte, len(x)+1)
	carry := byte(0)
	for i := len(x) - 1; i >= 0; i-- {
		n := x[i] - '0' + y[i] - '0' + carry
		carry = n / 10
		sum[i+1] = n%10 + '0'
	}
	sum[0] = carry + '0'
	return string(sum)
}

// subtractDigits subtracts y from x, two digit strings of the same length; x is
// not smaller than y.
func subtractDigits(x, y string) string {
	difference := make([]byte, len(x))
	borrow := byte(0)
	for i := len(x) - 1; i >= 0; i-- {
		n := x[i] + 10 - y[i] - borrow
		borrow = 1 - n/10
		difference[i] = n%10 + '0'
	}
	return string(difference)
}

// toJSON returns the number without an exponent. It keeps the zeros of its scale, so
// that 1.5 + 1.5 is 3.0. Zero has no sign.
func (d decimal) toJSON() JSON {
	digits := d.digits
	if pad := d.scale + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	cut := len(digits) - d.scale
	whole, fraction := strings.TrimLeft(digits[:cut], "0"), digits[cut:]
	if whole == "" {
		whole = "0"
	}
	text := whole
	if fraction != "" {
		text += "." + fraction
	}
	if d.negative && strings.Trim(text, "0.") != "" {
		text = "-" + text
	}
	return JSON(text)
}

// compareNumbers orders two well-formed numbers exactly, for any exponents.
func compareNumbers(a, b string) int {
	x, y := normalizeNumber(a), normalizeNumber(b)
	if x.sign != y.sign {
		return cmp.Compare(x.sign, y.sign)
	}
	return x.sign * cmp.Or(compareFarExponents(x, y), cmp.Compare(x.point, y.point), cmp.Compare(x.digits, y.digits))
}

// compareFarExponents compares two exponents of 19 digits or more on the same side of zero
// by their digits; how many digits the numbers have besides makes no difference.
func compareFarExponents(x, y normalizedNumber) int {
	if x.farDigits == "" || y.farDigits == "" || (x.point < 0) != (y.point < 0) {
		return 0
	}
	order := cmp.Or(cmp.Compare(len(x.farDigits), len(y.farDigits)), cmp.Compare(x.farDigits, y.farDigits))
	if x.point < 0 {
		return -order
	}
	return order
}

// normalizedNumber is 0.digits × 10^point with no zero at either end of digits.
type normalizedNumber struct {
	sign      int // -1, 0, 1
	digits    string
	point     int64
	farDigits string // the digits of an exponent that point only stands for
}

func normalizeNumber(text string) normalizedNumber {
	n := normalizedNumber{sign: 1}
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, n.sign = rest, -1
	}
	mantissa, exponent := splitExponent(text)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return normalizedNumber{}
	}
	n.point = exponent + int64(len(digits)-len(fraction))
	n.digits = strings.TrimRight(digits, "0")
	if exponent == farExponent || exponent == -farExponent {
		n.farDigits = strings.TrimLeft(text[len(mantissa)+1:], "+-0")
	}
	return n
}
