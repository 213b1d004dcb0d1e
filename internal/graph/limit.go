package graph

import "strconv"

// LimitError says that an expression or a value went beyond a limit of the
// server.
type LimitError struct {
	Limit   string // the option that sets it, like max-value-bytes
	Most    int64
	Need    int64  // what there was, or a lower bound; 0 = not known
	Channel string // where; "" = not about a channel
	Problem string // what went beyond it, and what would be right
}

// Error tells the problem.
func (e *LimitError) Error() string { return e.Problem }

// Details are the parameters of a failure of this kind.
func (e *LimitError) Details() map[string]string {
	details := map[string]string{"limit": e.Limit, "most": strconv.FormatInt(e.Most, 10)}
	if e.Need > 0 {
		details["need"] = strconv.FormatInt(e.Need, 10)
	}
	if e.Channel != "" {
		details["channel"] = e.Channel
	}
	return details
}
