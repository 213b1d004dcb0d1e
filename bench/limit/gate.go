package limit

import (
	"fmt"
	"sync"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/proto"
)

// gate holds back its callers until it is opened. A later caller waits for
// the next time.
type gate struct {
	mu   sync.Mutex
	next chan struct{}
}

func (g *gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.next = make(chan struct{})
	}
	return g.next
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next != nil {
		close(g.next)
		g.next = nil
	}
}

// decode reads the messages of the scripts that encode.
func decode(calls map[string]Script) (map[string][]proto.Message, error) {
	all := map[string][]proto.Message{}
	for name, script := range calls {
		if !script.Encode {
			continue
		}
		for _, message := range script.Messages {
			var e graphdv1.Event
			if err := proto.Unmarshal(message, &e); err != nil {
				return nil, fmt.Errorf("limit: %s: %w", name, err)
			}
			all[name] = append(all[name], &e)
		}
	}
	return all, nil
}
