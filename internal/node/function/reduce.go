package function

import (
	"encoding/json"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// ReduceWrites combines the writes of a superstep, one after the other. The first value of a channel
// that is unset is the first write.
func ReduceWrites(r *pregel.Reduction, reduce api.Reduce) pregel.Result {
	value, writes := json.RawMessage(r.Current), r.Writes
	if r.Current == "" {
		value, writes = json.RawMessage(writes[0]), writes[1:]
	}
	for _, write := range writes {
		next, err := reduce(value, json.RawMessage(write))
		if err != nil {
			return FailedResult(FailureOf(err))
		}
		value = next
	}
	return pregel.Result{Update: payload.JSON(value)}
}
