package runtime

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Assistant is a graph with a configuration, in one of its versions.
type Assistant struct {
	Tenant      string
	ID          string
	Graph       string // with the tenant
	Name        string
	Description string
	Context     payload.JSON // "" = none
	Config      payload.JSON // "" = none
	Metadata    map[string]string
	Version     int // from 1
	Created     time.Time
	Updated     time.Time // when the version was made
	Revision    uint64    // of the assistant; the etag
}

// CreateAssistantRequest is a request to make an assistant.
type CreateAssistantRequest struct {
	Assistant Assistant // an empty ID is made by the server
	RequestID string
	Digest    string // of the request's content, for RequestID
}

// UpdateAssistantRequest is a request for a further version of an assistant. Nil fields stay.
type UpdateAssistantRequest struct {
	Tenant      string
	ID          string
	Etag        uint64 // 0 = any
	Graph       *string
	Name        *string
	Description *string
	Context     *payload.JSON
	Config      *payload.JSON
	Metadata    map[string]string
	// ReplaceMetadata says that labels which are not in Metadata go. DropKeys are those that go
	// otherwise.
	ReplaceMetadata bool
	DropKeys        []string
	// Admits reports whether the caller may change an assistant of a graph, nil = any.
	Admits func(graph string) error
}

// AssistantQuery selects assistants of a tenant. Zero fields select all.
type AssistantQuery struct {
	Tenant   string
	Graph    string
	Metadata map[string]string // all must be equal
	After    AssistantPosition // keyset page
	Limit    int
	// IsBasic leaves out description, context and config.
	IsBasic  bool
	MaxBytes int // of the assistants together, of which at least one is returned
}

// AssistantVersionQuery selects versions of an assistant.
type AssistantVersionQuery struct {
	Tenant   string
	ID       string
	Before   int // versions with smaller numbers, 0 = all
	Limit    int
	MaxBytes int // of the versions together, of which at least one is returned
}

// AssistantPosition is a place in a list of assistants; zero = the start.
type AssistantPosition struct {
	Created time.Time
	ID      string
}

// Position returns where an assistant stands.
func (a *Assistant) Position() AssistantPosition {
	return AssistantPosition{Created: a.Created, ID: a.ID}
}

// Size returns about how many bytes an assistant holds.
func (a *Assistant) Size() int {
	n := len(a.ID) + len(a.Graph) + len(a.Name) + len(a.Description) + len(a.Context) + len(a.Config)
	for key, value := range a.Metadata {
		n += len(key) + len(value)
	}
	return n
}

// NewAssistantNotFoundError returns the refusal of an id that no assistant has.
func NewAssistantNotFoundError(id string) *Error {
	return Errorf(ReasonAssistantNotFound, "there is no assistant %q", id).With("assistantId", id)
}
