package graph

import "strconv"

// LimitError says that an expression or a value went beyond a limit of the
// server.
type LimitError struct {
	Limit   string // the option that sets it, like max-value-bytes; "" = none does
	Max     int64
	Needed  int64  // the actual number, or a lower bound; 0 = not known
	Channel string // where; "" = not about a channel
	Problem string // the part that exceeds it, and the remedy
}

// Error tells the problem.
func (e *LimitError) Error() string { return e.Problem }

// Details returns the parameters of a failure of this kind.
func (e *LimitError) Details() map[string]string {
	details := map[string]string{"most": strconv.FormatInt(e.Max, 10)}
	if e.Limit != "" {
		details["limit"] = e.Limit
	}
	if e.Needed > 0 {
		details["need"] = strconv.FormatInt(e.Needed, 10)
	}
	if e.Channel != "" {
		details["channel"] = e.Channel
	}
	return details
}

// ExceededLimit returns the limit and the size that exceeds it.
func (e *LimitError) ExceededLimit() (option string, most, need int64) {
	return e.Limit, e.Max, e.Needed
}

// LimitErrorOf returns the LimitError of a failure that has its details.
func LimitErrorOf(problem string, details map[string]string) *LimitError {
	most, _ := strconv.ParseInt(details["most"], 10, 64)
	need, _ := strconv.ParseInt(details["need"], 10, 64) // 0 when it is not known
	return &LimitError{Limit: details["limit"], Max: most, Needed: need, Channel: details["channel"], Problem: problem}
}
