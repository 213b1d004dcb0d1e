package layout

import (
	"database/sql"
	"math"
	"time"
)

// ToUnixNanos converts a time to the number in its column: nanoseconds since 1970.
// The zero time is the least number; a time out of range is the nearest number.
func ToUnixNanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return math.MinInt64
	case t.Year() < 1678:
		return math.MinInt64 + 1
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// FromNullNanos is FromUnixNanos of a column that may be empty.
func FromNullNanos(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.Unix(0, n.Int64).UTC()
}

// FromUnixNanos is the inverse of ToUnixNanos.
func FromUnixNanos(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// ClampInt64 fits a number into SQLite's integers. No stored number is greater.
func ClampInt64(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
