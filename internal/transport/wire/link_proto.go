package wire

import (
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// LinkRequest asks for a link by which one person answers one question. Names are as the
// clients of the tenant know them.
type LinkRequest struct {
	Tenant    string
	Thread    string
	Interrupt string
	Principal string
	Groups    []string
	Valid     time.Duration // 0 = the default
	Etag      string        // of the question to which the link is bound, "" = none
	Preset    payload.JSON  // "" = none
}

// Link is a link as clients get it.
type Link struct {
	URL     string
	Path    string
	Expires time.Time
}

// LinkFromProto converts a request for a link, and names its question. The principal is that of
// the request alone.
func LinkFromProto(v *Validator, req *graphdv1.MakeLinkRequest) (runtime.Question, LinkRequest) {
	if len(req.GetGroups()) > 0 && req.GetPrincipal() == "" {
		v.AddViolation("groups", "must come with principal; without it they are those of the caller")
	}
	l := LinkRequest{
		Tenant: v.Tenant(), Thread: req.GetThreadId(), Interrupt: req.GetInterruptId(),
		Principal: v.CheckName("principal", req.GetPrincipal()), Groups: v.CheckNames("groups", req.GetGroups()),
	}
	if req.GetValid() != nil {
		l.Valid = v.convertPositiveDuration("valid", req.GetValid())
	}
	if req.GetPreset() != nil {
		l.Preset = v.ConvertPayload("preset", req.GetPreset())
	}
	return QuestionFromProto(v, req), l
}

// LinkToProto converts a link.
func LinkToProto(l Link) *graphdv1.Link {
	return &graphdv1.Link{Url: l.URL, Path: l.Path, ExpireTime: TimeToProto(l.Expires)}
}
