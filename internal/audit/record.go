package audit

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is what a record tells.
type Kind string

// The kinds of records.
const (
	KindCall  Kind = "call"
	KindStart Kind = "start" // a server begins to write; Server says which
	KindStop  Kind = "stop"  // the server has ended in order
	KindGap   Kind = "gap"   // records before this one are lost
)

// Outcome is how a call ended.
type Outcome string

// The outcomes of calls.
const (
	OutcomeOK      Outcome = "ok"      // done; of a stream: its first message has left
	OutcomeRefused Outcome = "refused" // the caller is not known, or may not do this
	OutcomeFailed  Outcome = "failed"  // any other error; Code and Reason say which
)

// Record is an entry of the audit. It has no values, only their digests.
type Record struct {
	Kind Kind `json:"kind"`
	// Time is that of the store, which all servers share.
	Time time.Time `json:"time"`

	Principal string   `json:"principal,omitempty"` // "" = the server does not know its callers, or refused the credentials
	How       string   `json:"how,omitempty"`       // kind of the credentials
	Groups    []string `json:"groups,omitempty"`
	Tenant    string   `json:"tenant,omitempty"`
	Door      string   `json:"door,omitempty"`   // where the call came in, as the server knows it: grpc, http or link
	Remote    string   `json:"remote,omitempty"` // address of the client, or of its proxy
	RequestID string   `json:"request_id,omitempty"`

	Method  string  `json:"method,omitempty"` // like graphd.v1.GraphService/Resume
	Outcome Outcome `json:"outcome,omitempty"`
	Code    string  `json:"code,omitempty"`   // of gRPC, when the outcome is not ok
	Reason  string  `json:"reason,omitempty"` // of the protocol's table of errors
	Rule    string  `json:"rule,omitempty"`   // that refused the call

	Thread    string     `json:"thread,omitempty"`
	Run       string     `json:"run,omitempty"`
	Graph     string     `json:"graph,omitempty"`
	Version   string     `json:"version,omitempty"` // of the graph
	Worker    string     `json:"worker,omitempty"`
	Questions []Question `json:"questions,omitempty"`
	// What has the options and the digests of the request, by field.
	What map[string][]string `json:"what,omitempty"`
	// LeftOut is the number of groups, questions and texts of What that the record has
	// no room for.
	LeftOut int `json:"left_out,omitempty"`

	Server string `json:"server,omitempty"` // of start: name of the host and version of graphd

	// Of a gap: how many records are lost, since when, and how many of them were
	// calls with wrong credentials beyond the number that is recorded a second.
	Lost            uint64     `json:"lost,omitempty"`
	LostSince       *time.Time `json:"lost_since,omitempty"`
	Unauthenticated uint64     `json:"unauthenticated,omitempty"`
}

// Question is a question that a call names, with what was done to it.
type Question struct {
	ID        string `json:"id,omitempty"`    // "" = the only open one of the thread
	Value     string `json:"value,omitempty"` // digest of the answer
	Dismissed bool   `json:"dismissed,omitempty"`
}

// Bounds of a record, which keep it below MaxLineBytes.
const (
	maxTextBytes = 512
	maxItems     = 64 // groups; questions; texts of What
)

// limitSize makes a record fit its bounds. Most records fit as they are.
func (r *Record) limitSize() {
	for _, text := range []*string{
		&r.Principal, &r.How, &r.Tenant, &r.Door, &r.Remote, &r.RequestID, &r.Method, &r.Code, &r.Reason, &r.Rule,
		&r.Thread, &r.Run, &r.Graph, &r.Version, &r.Worker, &r.Server,
	} {
		*text = clipText(*text)
	}
	if len(r.Groups) > maxItems {
		r.LeftOut += len(r.Groups) - maxItems
		r.Groups = r.Groups[:maxItems:maxItems]
	}
	if len(r.Questions) > maxItems {
		r.LeftOut += len(r.Questions) - maxItems
		r.Questions = r.Questions[:maxItems]
	}
	for i := range r.Questions {
		r.Questions[i].ID = clipText(r.Questions[i].ID)
	}
	for name, texts := range r.What {
		if len(texts) > maxItems {
			r.LeftOut += len(texts) - maxItems
			texts = texts[:maxItems]
			r.What[name] = texts
		}
		for i := range texts {
			texts[i] = clipText(texts[i])
		}
	}
}

// clipText shortens a text to its bound.
func clipText(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	cut := maxTextBytes - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// recordOverhead is about the memory of a record without its texts.
const recordOverhead = 512

// heldBytes returns about the number of bytes that a record takes while it waits.
func (r *Record) heldBytes() int64 {
	n := recordOverhead + len(r.Principal) + len(r.Tenant) + len(r.Remote) + len(r.RequestID) + len(r.Rule) +
		len(r.Thread) + len(r.Run) + len(r.Graph) + len(r.Version) + len(r.Worker)
	for _, group := range r.Groups {
		n += len(group) + 16
	}
	for i := range r.Questions {
		n += len(r.Questions[i].ID) + len(r.Questions[i].Value) + 40
	}
	for name, texts := range r.What {
		n += len(name) + 64
		for _, text := range texts {
			n += len(text) + 16
		}
	}
	return int64(n)
}

// ShortMethod returns the method without its package: GraphService/Resume.
func (r *Record) ShortMethod() string { return r.Method[strings.LastIndexByte(r.Method, '.')+1:] }
