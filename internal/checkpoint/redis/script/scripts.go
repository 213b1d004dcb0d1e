// Package script runs the Lua scripts of a store: it builds their calls, sends changes and
// views of different threads together, repeats calls that may be repeated, and knows which
// changes had no answer.
package script

import (
	"embed"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var scriptFiles embed.FS

// Set has all scripts. The server knows a script by the hash of its text, so replicas of
// different versions of graphd can share a server. A script that the server has forgotten,
// as after a restart, is sent again.
type Set struct {
	Apply, Remove, View                       *Script
	Head, History, Values, Pending, Events    *goredis.Script
	Runs, Members, Changes, Membership, Names *goredis.Script
	Graph, Servers, Due                       *goredis.Script
	Interrupt, Interrupts                     *goredis.Script
	Tagged, TagCounts, TagMigrated, TagThread *goredis.Script
	Migrate2, Migrate3, Migrate4, Migrate5    *goredis.Script
}

// Script is a script whose calls a Batcher sends.
type Script struct {
	source, hash string

	calls sync.Pool // of *Call, whose commands are made
}

// Load makes the scripts.
func Load() (*Set, error) {
	var s Set
	for name, to := range map[string]**Script{"apply": &s.Apply, "delete": &s.Remove, "view": &s.View} {
		source, err := scriptFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: script %s: %w", name, err)
		}
		*to = &Script{source: string(source), hash: goredis.NewScript(string(source)).Hash()}
	}
	for name, to := range map[string]**goredis.Script{
		"head": &s.Head, "history": &s.History, "values": &s.Values,
		"pending": &s.Pending, "events": &s.Events, "runs": &s.Runs, "members": &s.Members, "changes": &s.Changes,
		"membership": &s.Membership, "names": &s.Names, "graph": &s.Graph,
		"servers": &s.Servers, "due": &s.Due, "migrate2": &s.Migrate2, "migrate3": &s.Migrate3, "migrate4": &s.Migrate4, "migrate5": &s.Migrate5, "question": &s.Interrupt, "questions": &s.Interrupts,
		"tagged": &s.Tagged, "tagcounts": &s.TagCounts, "tag_migrated": &s.TagMigrated, "tag_thread": &s.TagThread,
	} {
		source, err := scriptFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: script %s: %w", name, err)
		}
		*to = goredis.NewScript(string(source))
	}
	return &s, nil
}
