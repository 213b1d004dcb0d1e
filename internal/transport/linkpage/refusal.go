package linkpage

import (
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// refusal is a page that says why there is no form, or why an answer was not stored.
type refusal struct {
	Reason string // of the metric and the log
	Status int
	Title  string
	Text   string
}

// newRefusal returns the refusal for a reason, that of reasonInternal for an unknown one.
func newRefusal(reason string) refusal {
	for _, r := range listRefusals() {
		if r.Reason == reason {
			return r
		}
	}
	return refusal{
		reasonInternal, http.StatusInternalServerError,
		"Something went wrong", "The server could not do this. Try again later, or answer in your inbox.",
	}
}

// Reasons of refusals.
const (
	reasonUnknown         = "unknown"
	reasonLinkExpired     = "link_expired"
	reasonDraining        = "draining"
	reasonUnavailable     = "unavailable"
	reasonBusy            = "busy"
	reasonRate            = "rate"
	reasonTooLarge        = "too_large"
	reasonForm            = "form"
	reasonMethod          = "method"
	reasonGone            = "gone"
	reasonVoid            = "void"
	reasonQuestionExpired = "question_expired"
	reasonChanged         = "changed"
	reasonInEffect        = "in_effect"
	reasonClaimed         = "claimed"
	reasonFull            = "full"
	reasonAnswered        = "answered"
	reasonDenied          = "denied"
	reasonInternal        = "internal"
)

func listRefusals() []refusal {
	return []refusal{
		{reasonUnknown, http.StatusNotFound, "This link is not valid", "Open it as it was sent, all of it. If that does not help, ask for a new one."},
		{reasonLinkExpired, http.StatusGone, "This link has expired", "The question may still be open. Ask for a new link, or answer it in your inbox."},
		{reasonDraining, http.StatusServiceUnavailable, "Please try again in a moment", "The server is about to restart. Nothing was stored."},
		{reasonUnavailable, http.StatusServiceUnavailable, "Please try again in a moment", "The server can't reach its store. Nothing was stored."},
		{reasonBusy, http.StatusServiceUnavailable, "Please try again in a moment", "Many people use the server at the moment. Nothing was stored."},
		{reasonRate, http.StatusTooManyRequests, "Please try again in a moment", "There were too many requests. Nothing was stored."},
		{reasonTooLarge, http.StatusRequestEntityTooLarge, "The answer is too long", "Nothing was stored. Go back and shorten it."},
		{reasonForm, http.StatusBadRequest, "The form could not be read", "Nothing was stored. Open the link again, and send the form from there."},
		{reasonMethod, http.StatusMethodNotAllowed, "This is not how a link is used", "Open it in a browser."},
		{reasonGone, http.StatusGone, "The question is gone", "What asked it was deleted. There is nothing to answer."},
		{reasonVoid, http.StatusGone, "The question is not asked any more", "The run was cancelled, or went on without an answer."},
		{reasonQuestionExpired, http.StatusGone, "The time to answer is over", "The question has expired, and takes no more answers."},
		{reasonChanged, http.StatusConflict, "The question has changed", "This link was for the question as it was. Nothing was stored. Ask for a new link."},
		{reasonInEffect, http.StatusConflict, "It is too late", "Your answer has taken effect, and can't be taken back any more."},
		{reasonClaimed, http.StatusConflict, "Another person has taken the question", "Only that person may answer now. Nothing was stored."},
		{reasonFull, http.StatusConflict, "You have changed your answer too often", "The last one that was stored counts."},
		{reasonAnswered, http.StatusConflict, "The question is answered already", "Nothing more is needed from you."},
		{reasonDenied, http.StatusForbidden, "You may not answer this question", "It is for other people now. Nothing was stored."},
	}
}

// deniedText says why the policy of a question refuses a person.
func deniedText(rule string) string {
	switch rule {
	case "not_requester":
		return "You have asked for this yourself, so another person has to answer. Nothing was stored."
	case "not_contributor":
		return "You have edited what this is about, so another person has to answer. Nothing was stored."
	case "delegated":
		return "You have handed your part to another person, who answers in your place. Nothing was stored."
	case "exclusive":
		return "The question has to be taken before it is answered, in the inbox. Nothing was stored."
	case "responder":
		return "Another person has answered, and can take the answer back. Nothing was changed."
	}
	return newRefusal(reasonDenied).Text
}

// problem is the error of a call, taken apart.
type problem struct {
	code       codes.Code
	reason     string
	metadata   map[string]string
	message    string
	violations []*errdetails.BadRequest_FieldViolation
}

func readProblem(err error) problem {
	s := status.Convert(err)
	p := problem{code: s.Code(), message: s.Message()}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			p.reason, p.metadata = d.GetReason(), d.GetMetadata()
		case *errdetails.BadRequest:
			p.violations = d.GetFieldViolations()
		}
	}
	return p
}

// isOfAnswer reports whether another answer may be accepted.
func (p *problem) isOfAnswer() bool {
	switch p.reason {
	case "RESPONSE_SCHEMA_MISMATCH", "INVALID_FIELD", "INVALID_PAYLOAD_JSON", "PAYLOAD_TOO_LARGE", "SCHEMA_LIMIT_EXCEEDED":
		return true
	}
	return false
}

// toRefusal returns the page for the error of a call.
func (p *problem) toRefusal() refusal {
	switch p.reason {
	case "THREAD_NOT_FOUND", "INTERRUPT_NOT_FOUND":
		return newRefusal(reasonGone)
	case "INTERRUPT_ALREADY_RESOLVED":
		return p.refuseResolved()
	case "THREAD_NOT_INTERRUPTED", "NOTHING_TO_DO":
		return newRefusal(reasonVoid)
	case "INTERRUPT_EXPIRED":
		return newRefusal(reasonQuestionExpired)
	case "ETAG_MISMATCH", "QUESTION_CHANGED":
		return newRefusal(reasonChanged)
	case "RESPONSE_IN_EFFECT":
		return newRefusal(reasonInEffect)
	case "INTERRUPT_CLAIMED":
		return newRefusal(reasonClaimed)
	case "TRAIL_FULL":
		return newRefusal(reasonFull)
	case "ACCESS_DENIED":
		r := newRefusal(reasonDenied)
		r.Text = deniedText(p.metadata["rule"])
		return r
	case "SERVER_DRAINING":
		return newRefusal(reasonDraining)
	}
	switch p.code {
	case codes.ResourceExhausted:
		return newRefusal(reasonRate)
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Canceled:
		return newRefusal(reasonUnavailable)
	default:
		return newRefusal(reasonInternal)
	}
}

// refuseResolved tells when a question was answered. Who did is not for everybody with a link.
func (p *problem) refuseResolved() refusal {
	switch strings.ToUpper(p.metadata["state"]) {
	case "CANCELLED", "SUPERSEDED":
		return newRefusal(reasonVoid)
	case "EXPIRED":
		return newRefusal(reasonQuestionExpired)
	}
	at, _ := time.Parse(time.RFC3339, p.metadata["resolveTime"])
	return refuseAnswered(at)
}

func refuseAnswered(at time.Time) refusal {
	r := newRefusal(reasonAnswered)
	if !at.IsZero() && at.Unix() > 0 {
		r.Text = "It was answered on " + formatTime(at) + ". Nothing more is needed from you."
	}
	return r
}

// refuseState returns the page of a question that is not open; false = it is open.
func refuseState(q *graphdv1.Interrupt, now time.Time) (refusal, bool) {
	switch q.GetState() {
	case graphdv1.InterruptState_INTERRUPT_STATE_OPEN:
		if ends := q.GetExpireTime(); ends.IsValid() && !ends.AsTime().After(now) {
			return newRefusal(reasonQuestionExpired), true
		}
		return refusal{}, false
	case graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED, graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED:
		return refuseAnswered(q.GetResponseTime().AsTime()), true
	case graphdv1.InterruptState_INTERRUPT_STATE_EXPIRED:
		return newRefusal(reasonQuestionExpired), true
	default:
		return newRefusal(reasonVoid), true
	}
}
