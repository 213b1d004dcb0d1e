package graph

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration as graph files have it: like 500ms, 30s, 5m, 2h or 3d.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		const most = 100 * 365
		if err != nil || n > most || n < -most {
			return 0, fmt.Errorf("not a number of days: %q", days)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(s)
}
