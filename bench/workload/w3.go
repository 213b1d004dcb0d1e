package workload

import (
	"context"
	"fmt"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

	"github.com/graphd-dev/graphd/bench/wire"
)

// Tasks is how many W3 sends.
const Tasks = 100

// W3 has a node send 100 tasks, and another node join their results.
func W3(t Target) One {
	items := strings.TrimSuffix(strings.Repeat("1,", Tasks), ",")
	request := encode(&graphdv1.StreamRequest{Run: run("fan", "", `{"items":[`+items+`]}`)})
	return func(ctx context.Context, lane int, _ *Times) error {
		updates := 0
		e, err := t.follow(ctx, lane, Fan, request, func(e wire.Event) {
			if e.Kind == wire.Update {
				updates++
			}
		})
		if err == nil && updates != Tasks+2 {
			err = fmt.Errorf("%d updates came of %d", updates, Tasks+2)
		}
		if err == nil && !strings.Contains(e.output, `"sum":100`) {
			err = fmt.Errorf("the sum is not 100: %s", e.output)
		}
		return e.check(err, "W3", succeeded, "")
	}
}
