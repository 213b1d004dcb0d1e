package linkpage

import (
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/identity"
	"github.com/graphd-dev/graphd/internal/link"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Observer counts the pages that were served. outcome is the reason of a refusal, or shown,
// own_answer, invalid, changed, answered or undone.
type Observer interface {
	LinkServed(outcome string)
}

// Options make a Handler. All fields must be set.
type Options struct {
	Keys link.Keys
	// Calls makes calls of the services of this server, see interceptor.LocalConn.
	Calls      grpc.ClientConnInterface
	IsDraining func() bool
	Now        func() time.Time
	Observer   Observer
	OnPanic    func(*contain.PanicError) // of a page
}

// Bounds of a request.
const (
	maxBodyBytes = 256 << 10 // of a form; each byte may take three
	callTimeout  = 20 * time.Second
	maxVisits    = 32 // served at a time: each may hold a large question
)

// The door of links in the audit, and the role that a link gives for its question alone.
const (
	doorLink     = "link"
	roleAnswerer = "answerer"
)

// Names of controls that belong to no input.
const (
	controlNote = "note"
	controlSeen = "seen"
	controlDo   = "do"
	doUndo      = "undo"
)

// Handler serves the pages of links.
type Handler struct {
	opts      Options
	questions graphdv1.InterruptServiceClient
	runs      graphdv1.GraphServiceClient
	pages     *pages
	visits    chan struct{} // has a value for each visit that is served
}

// New makes a handler. The error is that of a template.
func New(o Options) (*Handler, error) {
	shown, err := newPages()
	if err != nil {
		return nil, err
	}
	return &Handler{
		opts: o, pages: shown, questions: graphdv1.NewInterruptServiceClient(o.Calls), runs: graphdv1.NewGraphServiceClient(o.Calls),
		visits: make(chan struct{}, maxVisits),
	}, nil
}

// visit is one request of a person with a link.
type visit struct {
	*Handler

	w     http.ResponseWriter
	r     *http.Request
	ctx   context.Context //nolint:containedctx // of the calls for this request
	link  link.Link
	leave func() // gives the place of the visit to another one
}

// ServeHTTP serves a link.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.pages.setHeaders(w.Header())
	v := &visit{Handler: h, w: w, r: r, leave: func() {}}
	defer v.refusePanic()
	token, isLink := strings.CutPrefix(r.URL.Path, link.PathPrefix)
	found, err := h.opts.Keys.ParseToken(token, h.opts.Now())
	switch {
	case !isLink || errors.Is(err, link.ErrInvalid):
		v.showRefusal(newRefusal(reasonUnknown))
		return
	case err != nil:
		v.showRefusal(newRefusal(reasonLinkExpired))
		return
	case h.opts.IsDraining():
		v.showRefusal(newRefusal(reasonDraining))
		return
	}
	v.link = found
	if r.Method == http.MethodPost && !v.readForm() { // before it takes a place: bodies may be slow
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	select {
	case h.visits <- struct{}{}:
		v.leave = sync.OnceFunc(func() { <-h.visits })
		defer v.leave()
	case <-ctx.Done():
		v.showRefusal(newRefusal(reasonBusy))
		return
	}
	v.ctx = interceptor.WithLocalCaller(ctx, callerOf(&found, r.RemoteAddr))
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		v.showQuestion()
	case http.MethodPost:
		v.receiveForm()
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		v.showRefusal(newRefusal(reasonMethod))
	}
}

// refusePanic shows a page for a mistake in this package; those in calls are errors of the calls.
func (v *visit) refusePanic() {
	if cause := recover(); cause != nil {
		v.opts.OnPanic(contain.NewPanicError(cause))
		v.showRefusal(newRefusal(reasonInternal))
	}
}

// callerOf returns the person of a link as a caller, who may answer.
func callerOf(l *link.Link, remote string) *interceptor.LocalCaller {
	caller := &interceptor.LocalCaller{Door: doorLink, Remote: textAddr(remote)}
	caller.Principal = identity.Principal{
		Name: l.Principal, Groups: l.Groups, Tenant: l.Tenant, Tenants: []string{l.Tenant}, Roles: []string{roleAnswerer}, How: identity.HowLink,
	}
	return caller
}

// textAddr is the address of a client as the HTTP server knows it.
type textAddr string

var _ net.Addr = textAddr("")

// Network returns the name of the network.
func (textAddr) Network() string { return "tcp" }

// String returns the address.
func (a textAddr) String() string { return string(a) }

// readQuestion reads the question of the link.
func (v *visit) readQuestion() (*graphdv1.Interrupt, error) {
	return v.questions.GetInterrupt(v.ctx, &graphdv1.GetInterruptRequest{ThreadId: v.link.Thread, InterruptId: v.link.Interrupt})
}

// showQuestion shows the question as it is now.
func (v *visit) showQuestion() {
	q, err := v.readQuestion()
	if err != nil {
		v.refuseError(err)
		return
	}
	if p := v.showOwnAnswer(q); p != nil {
		v.opts.Observer.LinkServed("own_answer")
		v.renderPage(http.StatusOK, p)
		return
	}
	if r, isOver := refuseState(q, v.opts.Now()); isOver {
		v.showRefusal(r)
		return
	}
	if v.isChanged(q) {
		v.showRefusal(newRefusal(reasonChanged))
		return
	}
	v.opts.Observer.LinkServed("shown")
	v.renderPage(http.StatusOK, showQuestion(q, v.link.Principal, v.link.Preset))
}

// isChanged reports whether the link was bound to the question as it was before.
func (v *visit) isChanged(q *graphdv1.Interrupt) bool {
	return v.link.IsBound() && v.link.Etag != q.GetEtag()
}

// showOwnAnswer makes the page for a person who has answered, nil = the person has not, or may
// answer once more.
func (v *visit) showOwnAnswer(q *graphdv1.Interrupt) *page {
	p := &page{IsGood: true, Person: visible.Line(v.link.Principal), Graph: visible.Line(q.GetGraph())}
	switch q.GetState() {
	case graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED, graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED:
		if q.GetResponder() != v.link.Principal {
			return nil
		}
		p.Title = "Thank you, your answer is stored"
		p.Text = []string{visible.Lines(q.GetMessage()), "You answered on " + formatTime(q.GetResponseTime().AsTime()) + "."}
		p.Facts = listFacts("Your answer", q.GetResponse().GetJson())
		if effective := q.GetEffectiveTime(); effective.IsValid() && effective.AsTime().After(v.opts.Now()) {
			p.Text = append(p.Text, "It takes effect at "+formatMoment(effective.AsTime())+".")
			p.Until, p.UntilAt = formatMoment(effective.AsTime()), effective.AsTime().UTC().Format(time.RFC3339)
		}
		return p
	case graphdv1.InterruptState_INTERRUPT_STATE_OPEN:
		if findVote(q, v.link.Principal) == nil || !v.isChanged(q) {
			return nil
		}
		p.Title = "Thank you, your answer counts"
		p.Text = append([]string{visible.Lines(q.GetMessage()), "The question is open until enough people have answered."}, describePeople(q)...)
		p.Until = "the question is decided"
		return p
	default:
		return nil
	}
}

// readForm reads what a person has sent, and returns false when it has refused that.
func (v *visit) readForm() bool {
	if kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		v.showRefusal(newRefusal(reasonForm))
		return false
	}
	v.r.URL.RawQuery = "" // of a gateway of mails that marks links: it is no part of the form
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxBodyBytes)
	err := v.r.ParseForm()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		v.showRefusal(newRefusal(reasonTooLarge))
		return false
	}
	if err != nil || !isText(v.r.PostForm) {
		v.showRefusal(newRefusal(reasonForm))
		return false
	}
	return true
}

// isText reports whether all values of a form are UTF-8.
func isText(values url.Values) bool {
	for _, list := range values {
		if slices.ContainsFunc(list, func(text string) bool { return !utf8.ValidString(text) }) {
			return false
		}
	}
	return true
}

// receiveForm takes what a person has sent.
func (v *visit) receiveForm() {
	if v.r.PostForm.Get(controlDo) == doUndo {
		v.retractAnswer()
		return
	}
	v.storeAnswer()
}

// retractAnswer takes the answer of the person back.
func (v *visit) retractAnswer() {
	_, err := v.questions.RetractResponse(v.ctx, &graphdv1.RetractResponseRequest{ThreadId: v.link.Thread, InterruptId: v.link.Interrupt})
	if err != nil {
		v.refuseError(err)
		return
	}
	v.opts.Observer.LinkServed("undone")
	v.showAgain()
}

// storeAnswer answers the question with what was typed.
func (v *visit) storeAnswer() {
	q, err := v.readQuestion()
	if err != nil {
		v.refuseError(err)
		return
	}
	seen := v.r.PostForm.Get(controlSeen)
	p := showQuestion(q, v.link.Principal, v.link.Preset)
	p.Note = v.r.PostForm.Get(controlNote)
	value, isWhole := p.Form.readAnswer(v.r.PostForm)
	r, isOver := refuseState(q, v.opts.Now())
	isSame := seen == q.GetSeen()
	switch {
	case isOver && (q.GetResponder() != v.link.Principal || !isWhole || !isSame): // the same answer again is accepted
		v.showRefusal(r)
		return
	case v.isChanged(q) && isWhole && isSame && v.hasCounted(q, value): // sent twice
		v.confirmAnswer()
		return
	case v.isChanged(q) && (!isWhole || !isSame): // the link has ended
		v.showRefusal(newRefusal(reasonChanged))
		return
	case !isSame:
		v.showChange(q)
		return
	case !isWhole:
		v.showProblem(p, "Something is missing or does not fit.")
		return
	}
	_, err = v.runs.ResumeRun(v.ctx, &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: v.link.Thread,
		Responses: []*graphdv1.InterruptResponse{{
			InterruptId: v.link.Interrupt, Note: strings.ReplaceAll(p.Note, "\r\n", "\n"), Seen: seen, Etag: v.link.Etag,
			Outcome: &graphdv1.InterruptResponse_Value{Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: value}}},
		}},
	}})
	if err == nil {
		v.confirmAnswer()
		return
	}
	wrong := readProblem(err)
	switch {
	case wrong.reason == "QUESTION_CHANGED":
		v.showLatest()
	case wrong.reason == "ETAG_MISMATCH":
		v.confirmOrRefuse(value)
	case wrong.isOfAnswer() && v.isChanged(q):
		v.showRefusal(newRefusal(reasonChanged))
	case wrong.isOfAnswer():
		v.showProblem(p, placeProblems(p.Form, &wrong))
	default:
		v.showRefusal(wrong.toRefusal())
	}
}

// confirmAnswer shows an answer that is stored.
func (v *visit) confirmAnswer() {
	v.opts.Observer.LinkServed("answered")
	v.showAgain()
}

// confirmOrRefuse ends the answer by a link that was bound to the question as it was before. When
// the same answer counts already, it was sent twice.
func (v *visit) confirmOrRefuse(value string) {
	q, err := v.readQuestion()
	switch {
	case err != nil:
		v.refuseError(err)
	case v.hasCounted(q, value):
		v.confirmAnswer()
	default:
		v.showRefusal(newRefusal(reasonChanged))
	}
}

// hasCounted reports whether an answer looks like the vote of the person that counts: their
// secret parts are not compared.
func (v *visit) hasCounted(q *graphdv1.Interrupt, value string) bool {
	vote := findVote(q, v.link.Principal)
	return vote.GetValue() != nil && redact.IsShownAs(value, vote.GetValue().GetJson(), q.GetSecret())
}

// showLatest shows a question that has changed while it was answered.
func (v *visit) showLatest() {
	q, err := v.readQuestion()
	if err != nil {
		v.refuseError(err)
		return
	}
	v.showChange(q)
}

// showChange shows a question that has changed since it was shown.
func (v *visit) showChange(q *graphdv1.Interrupt) {
	if v.isChanged(q) {
		v.showRefusal(newRefusal(reasonChanged))
		return
	}
	v.opts.Observer.LinkServed("changed")
	p := showQuestion(q, v.link.Principal, "")
	p.Notice, p.IsGood = "The question has changed since you opened it. Nothing was stored: read it again.", false
	v.renderPage(http.StatusConflict, p)
}

// showProblem shows the form with what was typed, secret parts apart, and what is wrong with it.
func (v *visit) showProblem(p *page, notice string) {
	v.opts.Observer.LinkServed("invalid")
	p.Notice, p.IsGood = notice, false
	p.Form.forgetSecrets()
	v.renderPage(http.StatusUnprocessableEntity, p)
}

// placeProblems shows the problems of an answer at their inputs, and returns the text above
// the form.
func placeProblems(f *input, wrong *problem) string {
	notice := "The answer does not fit. Nothing was stored."
	for _, one := range wrong.violations {
		_, pointer, isValue := strings.Cut(one.GetField(), ".value")
		switch {
		case isValue && f.showProblem(pointer, one.GetDescription()):
		case strings.HasSuffix(one.GetField(), ".note"):
			notice = "The note: " + one.GetDescription()
		default:
			notice = "The answer does not fit: " + one.GetDescription() + ". Nothing was stored."
		}
	}
	return notice
}

// showAgain has the browser read the page anew, so that a reload sends nothing again.
func (v *visit) showAgain() {
	_, token, _ := strings.Cut(v.r.URL.Path, link.PathPrefix)
	v.w.Header().Set("Location", token) // relative: a proxy may have put a path before it
	v.w.WriteHeader(http.StatusSeeOther)
}

func (v *visit) refuseError(err error) {
	p := readProblem(err)
	v.showRefusal(p.toRefusal())
}

// showRefusal shows why there is no form.
func (v *visit) showRefusal(r refusal) {
	v.opts.Observer.LinkServed(r.Reason)
	if r.Status == http.StatusServiceUnavailable || r.Status == http.StatusTooManyRequests {
		v.w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	v.renderPage(r.Status, &page{Title: r.Title, Text: []string{r.Text}})
}

// retrySeconds is when a person may try again.
const retrySeconds = 5
