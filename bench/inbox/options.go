package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/bench/stand"
)

// options are the flags of the benchmark.
type options struct {
	graphd, graphs, questions string
	chromium                  string
	size                      string
	count                     int // of questions, 0 = that of the size and the store
	stores, parts             []string
	lanes                     int
	rounds, repeat            int
	long, pause, rest         time.Duration
	out, docs, from           string
}

const usage = `Measure what the inbox costs while very many questions are open.

  inbox                                1,000,000 questions on Redis, 100,000 on SQLite
  inbox --count 20000 --rounds 3       as many on each store
  inbox --size smoke                   some hundreds: does it work? seconds

`

// The sizes of the benchmark.
const (
	smoke  = "smoke"
	normal = "normal"
)

// The parts of the benchmark.
const (
	theOperations = "operations"
	thePage       = "page"
	theWatchers   = "watchers"
	theNotifier   = "notifier"
)

func allParts() []string { return []string{theOperations, thePage, theWatchers, theNotifier} }

// smokeCount is how many questions the size smoke has.
const smokeCount = 400

func parse(arguments []string, w io.Writer) (options, error) {
	var o options
	var stores, parts string
	flags := flag.NewFlagSet("inbox", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.Usage = func() {
		fmt.Fprint(w, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.graphd, "graphd", "../bin/graphd", "graphd binary to measure")
	flags.StringVar(&o.graphs, "graphs", "graphs", "folder with the graphs of the workloads")
	flags.StringVar(&o.questions, "questions", "inbox/graphs", "folder with the graphs of the questions")
	flags.StringVar(&o.chromium, "chromium", "chromium", "name or path of Chromium, for the page")
	flags.StringVar(&o.size, "size", normal, "smoke or normal")
	flags.IntVar(&o.count, "count", 0, "open questions (default: 1,000,000 on Redis, 100,000 on SQLite; smoke: 400)")
	flags.StringVar(&stores, "stores", stand.RedisEverysec+","+stand.SQLite, "stores to measure, with commas between")
	flags.StringVar(&parts, "parts", strings.Join(allParts(), ","), "what to measure, with commas between")
	flags.IntVar(&o.lanes, "lanes", 64, "how many questions are asked at a time while the store is filled")
	flags.IntVar(&o.rounds, "rounds", 0, "how many rounds (default: 5; smoke: 1)")
	flags.IntVar(&o.repeat, "repeat", 0, "how often an operation is timed in a round (default: 200; smoke: 5)")
	flags.DurationVar(&o.long, "for", 0, "how long questions are asked and answered beside watchers (default: 5s; smoke: 50ms)")
	flags.DurationVar(&o.pause, "pause", 0, "after how long watchers connect again, of those that do (default: 1s; smoke: 10ms)")
	flags.DurationVar(&o.rest, "rest", -1, "how long to leave the server alone when the store is full (default: 130s; smoke: 0s)")
	flags.StringVar(&o.out, "out", "", "folder for the result as DATE-MACHINE-inbox.md and .json")
	flags.StringVar(&o.docs, "docs", "", "page to put the tables into, between its marks")
	flags.StringVar(&o.from, "from", "", "measure nothing, show this result (a JSON file)")
	if err := flags.Parse(arguments); err != nil {
		return options{}, err
	}
	o.stores, o.parts = readList(stores), readList(parts)
	err := o.settle()
	return o, err
}

// settle sets options without a flag, and refuses unknown values.
func (o *options) settle() error {
	rounds, repeat, long, pause, rest := 5, 200, 5*time.Second, time.Second, 130*time.Second
	switch o.size {
	case normal:
	case smoke:
		rounds, repeat, long, pause, rest = 1, 5, 200*time.Millisecond, 10*time.Millisecond, 0
	default:
		return fmt.Errorf("--size %s: want smoke or normal", o.size)
	}
	if o.rounds == 0 {
		o.rounds = rounds
	}
	if o.repeat == 0 {
		o.repeat = repeat
	}
	if o.long == 0 {
		o.long = long
	}
	if o.pause == 0 {
		o.pause = pause
	}
	if o.rest < 0 {
		o.rest = rest
	}
	if o.rounds < 1 || o.repeat < 1 || o.long < 0 || o.pause < 0 || o.lanes < 1 {
		return errors.New("--rounds, --repeat, --for, --pause and --lanes must be positive")
	}
	if o.count != 0 && o.count < smokeCount {
		return fmt.Errorf("--count %d: want at least %d", o.count, smokeCount)
	}
	known := []string{stand.RedisOff, stand.RedisEverysec, stand.RedisAlways, stand.SQLite}
	for _, s := range o.stores {
		if !slices.Contains(known, s) {
			return fmt.Errorf("--stores %s: want some of %s", s, strings.Join(known, ", "))
		}
	}
	for _, p := range o.parts {
		if !slices.Contains(allParts(), p) {
			return fmt.Errorf("--parts %s: want some of %s", p, strings.Join(allParts(), ", "))
		}
	}
	return nil
}

func readList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// countOn is how many questions a store has.
func (o *options) countOn(store string) int {
	switch {
	case o.count != 0:
		return o.count
	case o.size == smoke:
		return smokeCount
	case store == stand.SQLite:
		return 100_000
	default:
		return 1_000_000
	}
}
