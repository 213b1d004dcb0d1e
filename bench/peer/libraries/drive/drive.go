// Package drive answers lines of JSON with measurements of a Go library, see
// ../../README.md.
package drive

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Request is one line.
type Request struct {
	Workload string `json:"workload"`
	Store    string `json:"store"`
	URL      string `json:"url"`
	Clients  int    `json:"clients"`
	// Each client goes on for Seconds, or Repeat times if that is not 0.
	Seconds float64 `json:"seconds"`
	Repeat  int     `json:"repeat"`
}

// Redis takes the URL apart.
func (r Request) Redis() (address string, database int, err error) {
	address, number, _ := strings.Cut(strings.TrimPrefix(r.URL, "redis://"), "/")
	database, err = strconv.Atoi(number)
	return address, database, err
}

// One does a workload once in a new thread and returns the time that it took,
// or 0.
type One func(ctx context.Context, thread string) (time.Duration, error)

type answer struct {
	Rate  float64 `json:"rate"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Error string  `json:"error,omitempty"`
}

// Answer takes the requested measurements until its input ends.
func Answer(name, module string, open func(Request) (One, error)) {
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(map[string]string{"name": name, "version": version(module)})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		a, err := asked(lines.Bytes(), open)
		if err != nil {
			a = answer{Error: err.Error()}
		}
		_ = out.Encode(a)
	}
}

func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}

func asked(line []byte, open func(Request) (One, error)) (answer, error) {
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return answer{}, err
	}
	one, err := open(r)
	if err != nil {
		return answer{}, err
	}
	return measure(context.Background(), r, one)
}

func measure(ctx context.Context, r Request, one One) (answer, error) {
	var (
		threads atomic.Int64
		lanes   sync.WaitGroup
		all     = make([][]time.Duration, r.Clients)
		broken  = make([]error, r.Clients)
		began   = time.Now()
	)
	again := func(done int) bool {
		if r.Repeat > 0 {
			return done < r.Repeat
		}
		return time.Since(began).Seconds() < r.Seconds
	}
	for lane := range r.Clients {
		lanes.Go(func() {
			for broken[lane] == nil && again(len(all[lane])) {
				var took time.Duration
				took, broken[lane] = one(ctx, fmt.Sprintf("go-%d-%d-%d", os.Getpid(), began.UnixNano(), threads.Add(1)))
				all[lane] = append(all[lane], took)
			}
		})
	}
	lanes.Wait()
	seconds := time.Since(began).Seconds()
	times := slices.Concat(all...)
	slices.Sort(times)
	return answer{
		Rate: float64(len(times)) / seconds,
		P50:  times[len(times)/2].Seconds(), P99: times[len(times)*99/100].Seconds(),
	}, errors.Join(broken...)
}
