package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// The attributes of spans.
const (
	keyThread    = "graphd.thread"
	keyRun       = "graphd.run"
	keyTenant    = "graphd.tenant"
	keyGraph     = "graphd.graph"
	keyVersion   = "graphd.graph_version"
	keyNamespace = "graphd.namespace"
	keyStep      = "graphd.step"
	keyNode      = "graphd.node"
	keyTask      = "graphd.task"
	keyAttempt   = "graphd.attempt"
	keyInterrupt = "graphd.interrupt"
	keyState     = "graphd.state"
	keyReason    = "graphd.reason"
	keyResult    = "graphd.result"
)

// maxAttributes is how many attributes a span has at most, about.
const maxAttributes = 10

// maxTextBytes bounds a text that a tenant has chosen.
const maxTextBytes = 128

// graphName returns the name of a graph as clients know it.
func graphName(qualified string) string { return clipText(tenant.ClientName(qualified)) }

// clipText shortens a text.
func clipText(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxTextBytes-len("…")], "") + "…"
}

func runAttributes(run *checkpoint.Run) []attribute.KeyValue {
	return append(threadAttributes(run.Thread, run.ID), attribute.String(keyGraph, graphName(run.Graph)),
		attribute.String(keyVersion, clipText(run.Version)))
}

// threadAttributes names a thread, its tenant and a run.
func threadAttributes(thread, run string) []attribute.KeyValue {
	of, id := tenant.Split(thread)
	list := make([]attribute.KeyValue, 0, maxAttributes)
	return append(list, attribute.String(keyThread, clipText(id)), attribute.String(keyTenant, clipText(of)), attribute.String(keyRun, clipText(run)))
}

func stepAttributes(s *superstep.TracedStep) []attribute.KeyValue {
	list := append(threadAttributes(s.Run.Thread, s.Run.ID),
		attribute.String(keyGraph, graphName(s.Graph.Name)), attribute.Int(keyStep, s.Step))
	if s.Namespace != "" {
		list = append(list, attribute.String(keyNamespace, clipText(s.Namespace)))
	}
	return list
}
