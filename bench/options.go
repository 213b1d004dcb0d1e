package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
)

// options are the flags of the benchmark.
type options struct {
	graphd, graphs, peers, out, json string
	python                           string
	from, docs                       string
	size                             string
	only, stores                     []string
	rounds, connections              int
	long                             time.Duration
}

const usage = `Measure graphd beside its limits and its peers, all in this run on this machine.

  bench                        everything, about six minutes; 7 rounds
  bench --size full            the same for longer, with 100,000 parked threads and all numbers of clients
  bench --size smoke           one short round of everything: does it work? seconds
  bench --only W1 --stores redis-everysec --rounds 3
                               only what you are working on

A round measures graphd, its limit and its peers one after the other. Ratios are those of single
rounds: whatever else the machine does hits all of them. The limit is a gRPC server that makes as
many conditional commits of as many bytes, and sends the same messages, but knows nothing of graphs.

`

// The sizes of a benchmark.
const (
	smoke  = "smoke"
	normal = "normal"
	full   = "full"
)

func parse(arguments []string, w io.Writer) (options, error) {
	var o options
	var only, stores string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.Usage = func() {
		fmt.Fprint(w, usage)
		flags.PrintDefaults()
		fmt.Fprintln(w, "\nParts:")
		for _, p := range parts() {
			fmt.Fprintf(w, "  %-8s %s\n", p.name, p.about)
		}
	}
	flags.StringVar(&o.graphd, "graphd", "../bin/graphd", "graphd binary to measure")
	flags.StringVar(&o.graphs, "graphs", "graphs", "folder with the graphs of the workloads")
	flags.StringVar(&o.peers, "peers", "../.cache/peers", "folder with the installed peers; empty: without peers")
	flags.StringVar(&o.python, "python", "", "interpreter with the Python SDK, for remote nodes in Python; empty: without")
	flags.StringVar(&o.size, "size", normal, "smoke, normal or full")
	flags.StringVar(&only, "only", "", "parts to run, with commas between (default: all)")
	flags.StringVar(&stores, "stores", "", "stores to measure, with commas between: "+strings.Join(stand.Settings(), ", ")+" (default: all; smoke: three of them)")
	flags.IntVar(&o.rounds, "rounds", 0, "how many rounds (default: 7; smoke 1, full 15)")
	flags.DurationVar(&o.long, "for", 0, "how long to take each sample (default: 200ms; smoke 20ms, full 1s)")
	flags.IntVar(&o.connections, "connections", 4, "gRPC connections that all clients share")
	flags.StringVar(&o.json, "json", "", "file for the result as JSON")
	flags.StringVar(&o.out, "out", "", "folder for the result as DATE-MACHINE.md and .json")
	flags.StringVar(&o.from, "from", "", "measure nothing, show this result (a JSON file)")
	flags.StringVar(&o.docs, "docs", "", "page to put the table into, between its marks")
	if err := flags.Parse(arguments); err != nil {
		return options{}, err
	}
	o.only, o.stores = words(only), words(stores)
	err := o.settle()
	return o, err
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// settle sets options without a flag, and refuses unknown values.
func (o *options) settle() error {
	rounds, long := map[string]int{smoke: 1, normal: 7, full: 15}, map[string]time.Duration{
		smoke: 20 * time.Millisecond, normal: 200 * time.Millisecond, full: time.Second,
	}
	if rounds[o.size] == 0 {
		return fmt.Errorf("--size %s: want smoke, normal or full", o.size)
	}
	if o.rounds == 0 {
		o.rounds = rounds[o.size]
	}
	if o.long == 0 {
		o.long = long[o.size]
	}
	if o.rounds < 1 || o.long < 0 || o.connections < 1 {
		return errors.New("--rounds, --for and --connections must be positive")
	}
	if len(o.stores) == 0 {
		o.stores = stand.Settings()
		if o.size == smoke {
			o.stores = []string{stand.Memory, stand.SQLite, stand.RedisEverysec}
		}
	}
	for _, s := range o.stores {
		if !slices.Contains(stand.Settings(), s) {
			return fmt.Errorf("--stores %s: want some of %s", s, strings.Join(stand.Settings(), ", "))
		}
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(parts(), func(p part) bool { return p.name == name }) {
			return fmt.Errorf("--only %s: there is no such part; see --help", name)
		}
	}
	return nil
}

// chosen tells whether a part is to be run.
func (o *options) chosen(name string) bool { return len(o.only) == 0 || slices.Contains(o.only, name) }

// deliver shows the table and writes the files.
func (o *options) deliver(r report.Result, w io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := io.WriteString(w, r.Text()); err != nil {
		return err
	}
	if o.json != "" {
		if err := write(o.json, text); err != nil {
			return err
		}
	}
	if o.docs != "" {
		if err := document(o.docs, r); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	name := filepath.Join(o.out, r.About.Name())
	return errors.Join(write(name+".json", text), write(name+".md", []byte(r.Text())))
}

func write(file string, text []byte) error {
	return os.WriteFile(file, text, 0o644) //nolint:gosec // who runs the benchmark names it, and everybody may read it
}

// document puts the table into a page.
func document(file string, r report.Result) error {
	page, err := os.ReadFile(file) //nolint:gosec // who runs the benchmark names it
	if err != nil {
		return err
	}
	text, err := report.Insert(string(page), r)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return write(file, []byte(text))
}

// load reads a result that was measured before.
func load(file string) (report.Result, error) {
	var r report.Result
	text, err := os.ReadFile(file) //nolint:gosec // who runs the benchmark names it
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}
