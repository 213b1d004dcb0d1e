// Command play plays the dramas of internal/sim for growing installations, prints what came of
// them, and draws the graph.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/graphd-dev/graphd/internal/sim"
)

func main() {
	most := flag.Int("servers", 1000, "servers of the largest installation")
	partitions := flag.Bool("partitions", true, "play the largest installation with fixed numbers of partitions, too")
	graph := flag.String("graph", "", "file for the graph, SVG")
	seed := flag.Uint64("seed", 1, "the same seed plays the same")
	flag.Parse()
	var sizes []int
	for _, n := range []int{1, 3, 10, 30, 100, 300, 1000} {
		if n <= *most {
			sizes = append(sizes, n)
		}
	}
	fmt.Fprintf(os.Stdout, "Costs: %+v\n", sim.MeasuredCosts())
	playSizes(sizes, *seed)
	outcomes := playDramas(sizes, *seed)
	if *partitions && *most >= 1000 {
		playPartitions(*seed)
	}
	if *graph == "" {
		return
	}
	if err := os.WriteFile(*graph, []byte(sim.DrawGraph(outcomes, sizes[len(sizes)-1])), 0o644); err != nil { //nolint:gosec // a picture
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// allTime is how long servers that all look at all are played in a large installation: nothing
// changes after it, and each second of them takes long.
const allTime = 40 * time.Second

// playDrama plays a drama under a policy.
func playDrama(d sim.Drama, size sim.Size, policy sim.Policy, seed uint64) sim.Outcome {
	var most time.Duration
	if policy == sim.All && size.Servers >= 300 && d.Name != "lost-shard" {
		most = allTime
	}
	fmt.Fprintf(os.Stderr, "%s, %d servers, looks %s\n", d.Title, size.Servers, policy)
	return sim.Play(d, size, policy, seed, most)
}

// playSizes plays the steady state of each size.
func playSizes(sizes []int, seed uint64) {
	var all []sim.Outcome
	for _, n := range sizes {
		for _, policy := range []sim.Policy{sim.All, sim.Owners} {
			all = append(all, playDrama(sim.Steady(), sim.SizeOf(n), policy, seed))
		}
	}
	fmt.Fprint(os.Stdout, "\n## Steady state\n\n")
	sim.WriteSizes(os.Stdout, all)
}

// playDramas plays the dramas for each size.
func playDramas(sizes []int, seed uint64) map[string][]sim.Outcome {
	by := make(map[string][]sim.Outcome)
	for _, d := range sim.Dramas() {
		for _, n := range sizes {
			for _, policy := range []sim.Policy{sim.All, sim.Owners} {
				by[d.Name] = append(by[d.Name], playDrama(d, sim.SizeOf(n), policy, seed))
			}
		}
		fmt.Fprintf(os.Stdout, "\n## %s\n\n", d.Title)
		sim.WriteDramas(os.Stdout, by[d.Name])
	}
	return by
}

// playPartitions plays the largest installation with fixed numbers of partitions.
func playPartitions(seed uint64) {
	var steady, expiry []sim.Outcome
	for _, partitions := range []int{16, 64, 256, 1024} {
		size := sim.SizeOf(1000)
		size.Partitions, size.Masters = partitions, min(size.Masters, partitions)
		steady = append(steady, playDrama(sim.Steady(), size, sim.Owners, seed))
		expiry = append(expiry, playDrama(sim.MassExpiry(), size, sim.Owners, seed))
	}
	fmt.Fprint(os.Stdout, "\n## A fixed number of partitions\n\n")
	sim.WriteSizes(os.Stdout, steady)
	fmt.Fprintln(os.Stdout)
	sim.WriteDramas(os.Stdout, expiry)
}
