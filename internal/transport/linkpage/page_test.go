package linkpage_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/link"
)

func TestFormsBecomeAnswers(t *testing.T) {
	const object = `{"type": "object", "required": ["decision"], "properties": {
		"decision": {"enum": ["approved", "rejected"]}, "reason": {"type": "string", "maxLength": 80}, "text": {"type": "string"},
		"amount": {"type": "integer", "minimum": 1}, "price": {"type": "number"}, "urgent": {"type": "boolean"},
		"tags": {"type": "array", "items": {"type": "string"}}, "counts": {"type": "array", "items": {"type": "integer"}}, "other": {"type": "array"},
		"to": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}}}}`
	for name, c := range map[string]struct {
		schema string
		typed  map[string]string
		want   string // "" = problems
		wrong  map[string]string
	}{
		"no schema, a text":       {"", map[string]string{"v": "hello"}, `"hello"`, nil},
		"no schema, JSON":         {"", map[string]string{"v": ` {"a": 1.50} `}, `{"a": 1.50}`, nil},
		"no schema, nothing":      {"", map[string]string{"v": " "}, "", map[string]string{"v": "Your answer is needed"}},
		"a choice":                {`{"enum": ["yes", "no"]}`, map[string]string{"v": "1"}, `"no"`, nil},
		"numbers and texts alike": {`{"enum": ["1", 1, true, null]}`, map[string]string{"v": "1"}, "1", nil},
		"null":                    {`{"enum": ["1", 1, true, null]}`, map[string]string{"v": "3"}, "null", nil},
		"no choice of them":       {`{"enum": ["yes", "no"]}`, map[string]string{"v": "2"}, "", map[string]string{"v": "Your answer is none of the choices"}},
		"a text for a choice":     {`{"enum": ["yes", "no"]}`, map[string]string{"v": "yes"}, "", map[string]string{"v": "Your answer is none of the choices"}},
		"yes or no":               {`{"type": "boolean"}`, map[string]string{"v": "0"}, "true", nil},
		"a number":                {`{"type": "number"}`, map[string]string{"v": "12345678901234567890.10"}, "12345678901234567890.10", nil},
		"no number":               {`{"type": "integer"}`, map[string]string{"v": "1,5"}, "", map[string]string{"v": "Your answer does not fit: want integer"}},
		"a text in quotes":        {`{"type": "string"}`, map[string]string{"v": `"x"`}, `"\"x\""`, nil},
		"space around a text":     {`{"type": "string"}`, map[string]string{"v": " 6600\r\n"}, `"6600"`, nil},
		"a default with space": {
			`{"type": "object", "properties": {"t": {"type": "string", "default": " x\n"}}}`, map[string]string{"v.0": " x\r\n"}, `{"t": " x\n"}`, nil,
		},
		"lines of a text": {`{"type": "string"}`, map[string]string{"v": "a\r\nb"}, `"a\nb"`, nil},
		"the least":       {object, map[string]string{"v.0": "0"}, `{"decision": "approved"}`, nil},
		"all of it": {object, map[string]string{
			"v.0": "1", "v.1": "no", "v.2": " a ", "v.3": "7", "v.4": "1.10", "v.5": "1", "v.6": "a, b\n\nc", "v.7": "1\n2", "v.8": "[{}]", "v.9.0": "Bonn",
		}, `{"decision": "rejected", "reason": "no", "text": "a", "amount": 7, "price": 1.10, "urgent": false, "tags": ["a, b", "c"], "counts": [1, 2], "other": [{}], "to": {"city": "Bonn"}}`, nil},
		"something is missing": {object, map[string]string{"v.9.1": "5"}, "", map[string]string{"v.0": "decision is needed", "v.9.0": "city is needed"}},
		"something does not fit": {object, map[string]string{"v.0": "0", "v.3": "x", "v.7": "1\ny", "v.8": "[1"}, "", map[string]string{
			"v.3": "amount does not fit: want integer from 1", "v.7": "counts does not fit: want integer", "v.8": "other is no JSON",
		}},
		"unknown controls": {object, map[string]string{"v.0": "0", "v.99": "x", "w": "y", "": "z"}, `{"decision": "approved"}`, nil},
		"a constant": {
			`{"type": "object", "required": ["kind", "n"], "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}}`,
			map[string]string{"v.1": "1"},
			`{"kind": "a", "n": 1}`, nil,
		},
		"what a value demands": {
			`{"type": "object", "required": ["d"], "properties": {"d": {"enum": ["yes", "no"]}, "why": {"type": "string"}},
			"if": {"properties": {"d": {"const": "no"}}, "required": ["d"]}, "then": {"required": ["why"]}}`,
			map[string]string{"v.0": "1"},
			"",
			map[string]string{"v.1": "why is needed"},
		},
		"what no value demands": {
			`{"type": "object", "required": ["d"], "properties": {"d": {"enum": ["yes", "no"]}, "why": {"type": "string"}},
			"if": {"properties": {"d": {"const": "no"}}, "required": ["d"]}, "then": {"required": ["why"]}}`,
			map[string]string{"v.0": "0"},
			`{"d": "yes"}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.schema, "")
			require.Equal(t, http.StatusOK, s.get().Code)
			values := url.Values{}
			for control, text := range c.typed {
				values.Set(control, text)
			}
			got := s.post(values)
			if c.want != "" {
				require.Equal(t, http.StatusSeeOther, got.Code, got.Body)
				require.JSONEq(t, c.want, s.answers[0].GetValue().GetJson())
				if strings.Contains(c.want, ".10") {
					require.Contains(t, s.answers[0].GetValue().GetJson(), ".10", "a number stays as it was typed")
				}
				require.Equal(t, "digest-1", s.answers[0].GetSeen())
				return
			}
			require.Equal(t, http.StatusUnprocessableEntity, got.Code)
			require.Empty(t, s.answers)
			found := problemsOf(got.Body.String())
			require.Len(t, found, len(c.wrong), "%v", found)
			for control, text := range c.wrong {
				require.Contains(t, found[control], text)
			}
		})
	}
}

func TestWhatWasTypedStays(t *testing.T) {
	s := newSite(t, `{"type": "object", "required": ["d", "n"], "properties": {"d": {"enum": ["yes", "no"]}, "n": {"type": "integer"}, "t": {"type": "string"}}}`, "")
	body := s.post(url.Values{"v.0": {"1"}, "v.1": {"many"}, "v.2": {"\n<b>&"}, "note": {"by phone"}}).Body.String()
	for _, text := range []string{`value="1" checked`, `value="many"`, "&lt;b&gt;&amp;</textarea>", "by phone</textarea>", `aria-invalid="true"`, `aria-describedby="v.1-problem`} {
		require.Contains(t, body, text)
	}
}

func TestDefaultsAndPresets(t *testing.T) {
	const schema = `{"type": "object", "properties": {"d": {"enum": ["yes", "no"], "default": "no"}, "n": {"type": "integer", "default": 30},
		"l": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]}, "t": {"type": "string", "maxLength": 9, "title": "Why", "description": "In short"}}}`
	body := newSite(t, schema, "").get().Body.String()
	for _, text := range []string{`value="1" selected`, `value="30"`, "a\nb</textarea>", ">Why <i>optional</i>", "In short"} {
		require.Contains(t, body, text)
	}
	body = newSite(t, schema, `{"d": "yes", "n": 7, "t": "ok"}`).get().Body.String()
	for _, text := range []string{`value="0" selected`, `value="7"`, `value="ok"`} {
		require.Contains(t, body, text)
	}
}

// Nothing of a graph or of a person is markup.
func TestHostileContentIsInert(t *testing.T) {
	const evil = `</textarea></style><script>alert(1)</script>" onload="x' javascript:alert(1) \u202e`
	quoted := `"` + strings.ReplaceAll(evil, `"`, `\"`) + `"`
	s := newSite(t, `{"type": "object", "required": ["a"], "properties": {"a": {"enum": [`+quoted+`, "b"]}, `+quoted+`: {"type": "string", "title": `+quoted+
		`, "description": `+quoted+`, "default": `+quoted+`}, "c": {"type": "object", "default": {"x": `+quoted+`}}}}`, "")
	plain := strings.ReplaceAll(evil, `\u202e`, "\u202e")
	s.question.Message, s.question.Graph = plain, plain
	s.question.Value = newPayload(`{` + quoted + `: ` + quoted + `, "list": [` + quoted + `], "link": "javascript:alert(1)"}`)
	s.question.Assignees = []string{plain}
	s.path = s.sign(t, func(l *link.Link) { l.Principal = plain })
	for _, got := range []string{s.get().Body.String(), s.post(url.Values{"v.1": {plain}, "note": {plain}, "v.2": {"{"}}).Body.String()} {
		require.NotContains(t, strings.ToLower(got), "<script")
		require.NotContains(t, got, `" onload`)
		require.NotContains(t, got, "href")
		shown, _, _ := strings.Cut(got, "<form")
		require.NotContains(t, shown, "\u202e", "what the question shows can't be reordered")
		require.Equal(t, strings.Count(got, "<textarea"), strings.Count(got, "</textarea>"))
		require.Equal(t, 1, strings.Count(got, "</style>"))
	}
}

func TestSecretPartsAreNamed(t *testing.T) {
	s := newSite(t, "", "")
	s.question.Value = newPayload(`{"account": {"__redacted__": true}}`)
	require.Contains(t, s.get().Body.String(), "<dt>account</dt><dd>(secret)</dd>")
}

// What a person types for a secret part is not shown while it is typed, and no page repeats it.
func TestSecretPartsAreTypedUnseen(t *testing.T) {
	s := newSite(t, `{"type": "object", "required": ["n"], "properties": {"pin": {"type": "integer"}, "card": {"type": "object", "properties": {"a/b": {"type": "string"}}},
		"why": {"type": "string", "maxLength": 9}, "codes": {"type": "array", "items": {"type": "integer"}}, "kind": {"enum": ["x", "y"]}, "n": {"type": "integer"}}}`, "")
	s.question.Secret = []string{"/pin", "/card/a~1b", "/codes", "/kind"}
	body := s.get().Body.String()
	require.Equal(t, 2, strings.Count(body, `type="password"`))
	body = s.post(url.Values{"v.0": {"7777"}, "v.1.0": {"7777"}, "v.2": {"open"}, "v.3": {"7777x"}, "v.4": {"1"}, "v.5": {"many"}}).Body.String()
	require.NotContains(t, body, "7777")
	require.NotContains(t, body, `value="1" selected`)
	require.Contains(t, body, `value="many"`)
	require.Regexp(t, `name="v.2"[^>]*value="open"`, body)
}

func TestChangedQuestionsAreShownAnew(t *testing.T) {
	for name, send := range map[string]func(s *site) *httptest.ResponseRecorder{
		"before": func(s *site) *httptest.ResponseRecorder {
			return s.post(url.Values{"v": {"yes"}, "seen": {"digest-0"}})
		},
		"without seen": func(s *site) *httptest.ResponseRecorder { return s.post(url.Values{"v": {"yes"}, "seen": {""}}) },
		"while it came": func(s *site) *httptest.ResponseRecorder {
			s.change = func(f *fakeServer) { f.question.Message, f.question.Seen = "Refund 900?", "digest-2" }
			s.refusal = newRefusal(t, codes.Aborted, "QUESTION_CHANGED", nil)
			return s.post(url.Values{"v": {"yes"}})
		},
	} {
		s := newSite(t, "", "")
		got := send(s)
		require.Equal(t, http.StatusConflict, got.Code, name)
		require.Contains(t, got.Body.String(), "has changed since you opened it")
		require.Contains(t, got.Body.String(), `name="seen" value="`+s.question.GetSeen()+`"`)
		require.Contains(t, got.Body.String(), s.question.GetMessage())
		require.Empty(t, s.answers)
	}
}

func TestRefusalsOfTheServer(t *testing.T) {
	for reason, c := range map[string]struct {
		code     codes.Code
		metadata map[string]string
		status   int
		text     string
	}{
		"INTERRUPT_ALREADY_RESOLVED": {codes.FailedPrecondition, map[string]string{"state": "answered", "responder": "ben", "resolveTime": "2026-11-27T08:00:00Z"}, 409, "27 November 2026, 08:00 UTC"},
		"INTERRUPT_EXPIRED":          {codes.FailedPrecondition, nil, 410, "time to answer is over"},
		"INTERRUPT_NOT_FOUND":        {codes.NotFound, nil, 410, "is gone"},
		"THREAD_NOT_FOUND":           {codes.NotFound, nil, 410, "is gone"},
		"THREAD_NOT_INTERRUPTED":     {codes.FailedPrecondition, nil, 410, "not asked any more"},
		"ETAG_MISMATCH":              {codes.Aborted, nil, 409, "has changed"},
		"INTERRUPT_CLAIMED":          {codes.FailedPrecondition, map[string]string{"claimedBy": "ben"}, 409, "Another person has taken"},
		"TRAIL_FULL":                 {codes.FailedPrecondition, nil, 409, "too often"},
		"ACCESS_DENIED":              {codes.PermissionDenied, map[string]string{"rule": "delegated"}, 403, "handed your part"},
		"SERVER_DRAINING":            {codes.Unavailable, nil, 503, "about to restart"},
		"STORE_UNAVAILABLE":          {codes.Unavailable, nil, 503, "its store"},
		"RATE_LIMITED":               {codes.ResourceExhausted, nil, 429, "too many requests"},
		"INTERNAL":                   {codes.Internal, nil, 500, "went wrong"},
	} {
		s := newSite(t, "", "")
		s.refusal = newRefusal(t, c.code, reason, c.metadata)
		got := s.post(url.Values{"v": {"yes"}})
		body := got.Body.String()
		require.Equal(t, c.status, got.Code, reason)
		require.Contains(t, body, c.text, reason)
		require.NotContains(t, body, "secret cause", "an internal cause")
		require.NotContains(t, body, "ben", "who has answered or claimed is not told")
		require.NotContains(t, body, "<form")
		require.Equal(t, c.status == 503 || c.status == 429, got.Header().Get("Retry-After") != "")
		s.readErr = s.refusal
		require.Equal(t, c.status, s.get().Code, reason)
	}
	s := newSite(t, "", "")
	s.draining = true
	require.Equal(t, http.StatusServiceUnavailable, s.get().Code)
}

func TestProblemsOfTheServerAreAtTheirInputs(t *testing.T) {
	s := newSite(t, `{"type": "object", "properties": {"a/b": {"type": "string"}, "o": {"type": "object", "properties": {"n": {"type": "integer"}}}}}`, "")
	at := func(pointer, text string) *errdetails.BadRequest_FieldViolation {
		return &errdetails.BadRequest_FieldViolation{Field: "resume.responses[0].value" + pointer, Description: text}
	}
	s.refusal = newRefusal(t, codes.InvalidArgument, "RESPONSE_SCHEMA_MISMATCH", nil, at("/a~1b", "is too long"), at("/o/n", "must be 1 or more"), at("", "has too many keys"))
	got := s.post(url.Values{"v.0": {"x"}, "v.1.0": {"0"}})
	require.Equal(t, http.StatusUnprocessableEntity, got.Code)
	require.Equal(t, map[string]string{"v.0": "a/b is too long", "v.1.0": "n must be 1 or more"}, problemsOf(got.Body.String()))
	require.Contains(t, got.Body.String(), "has too many keys")
}

func TestStatesOfAQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*graphdv1.Interrupt)
		code   int
		text   string
	}{
		"cancelled":  {func(q *graphdv1.Interrupt) { q.State = graphdv1.InterruptState_INTERRUPT_STATE_CANCELLED }, 410, "not asked any more"},
		"superseded": {func(q *graphdv1.Interrupt) { q.State = graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED }, 410, "not asked any more"},
		"expired":    {func(q *graphdv1.Interrupt) { q.State = graphdv1.InterruptState_INTERRUPT_STATE_EXPIRED }, 410, "is over"},
		"overdue":    {func(q *graphdv1.Interrupt) { q.ExpireTime = timestamppb.New(now) }, 410, "is over"},
		"by another": {func(q *graphdv1.Interrupt) {
			q.State, q.Responder, q.ResponseTime = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, "ben", timestamppb.New(now)
		}, 409, "It was answered on"},
		"by the person": {func(q *graphdv1.Interrupt) {
			q.State, q.Responder, q.ResponseTime = graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED, "carol", timestamppb.New(now)
			q.EffectiveTime = timestamppb.New(now.Add(time.Minute))
		}, 200, "Take it back"},
		"with an end": {func(q *graphdv1.Interrupt) { q.ExpireTime = timestamppb.New(now.Add(time.Hour)) }, 200, "Until 27 November 2026, 10:00 UTC"},
	} {
		s := newSite(t, "", "")
		c.change(s.question)
		got := s.get()
		require.Equal(t, c.code, got.Code, name)
		require.Contains(t, got.Body.String(), c.text, name)
		require.NotContains(t, got.Body.String(), "ben")
	}
}

func TestRequestsAreBounded(t *testing.T) {
	s := newSite(t, "", "")
	got := s.postText("seen=digest-1&v=" + strings.Repeat("a", 256<<10))
	require.Equal(t, http.StatusRequestEntityTooLarge, got.Code)
	require.Equal(t, http.StatusBadRequest, s.postText("v=%zz").Code)
	for _, kind := range []string{"", "application/json", "multipart/form-data; boundary=x", "text/plain"} {
		r := httptest.NewRequest(http.MethodPost, s.path, strings.NewReader("v=yes&seen=digest-1"))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusBadRequest, w.Code, kind)
	}
	require.Empty(t, s.answers)
	require.Equal(t, http.StatusSeeOther, s.post(url.Values{"v": {"yes"}, "do": {"else"}}).Code)
}

// A schema of a size beyond a page is answered as JSON.
func TestLargeSchemasAreAnsweredAsJSON(t *testing.T) {
	var properties []string
	for i := range 300 {
		properties = append(properties, `"f`+strings.Repeat("x", i)+`": {"type": "string"}`)
	}
	s := newSite(t, `{"type": "object", "properties": {`+strings.Join(properties, ",")+`}}`, "")
	require.Equal(t, 2, strings.Count(s.get().Body.String(), "<textarea"))
	require.Equal(t, http.StatusSeeOther, s.post(url.Values{"v": {`{"fx": "a"}`}}).Code)
	require.JSONEq(t, `{"fx": "a"}`, s.answers[0].GetValue().GetJson())
	deep := strings.Repeat(`{"type": "object", "properties": {"a": `, 40) + `{}` + strings.Repeat("}}", 40)
	require.Equal(t, http.StatusOK, newSite(t, deep, "").get().Code)
}

// Whatever is sent, the answer is JSON or the page says what is wrong.
func FuzzForms(f *testing.F) {
	const schema = `{"type": "object", "required": ["d"], "properties": {"d": {"enum": ["yes", "no"]}, "n": {"type": "integer"},
		"l": {"type": "array", "items": {"type": "number"}}, "o": {"type": "object", "properties": {"t": {"type": "string"}}}, "j": {"type": "array"}, "a": {}}}`
	f.Add(schema, "seen=digest-1&v.0=0&v.1=3&v.2=1%0A2&v.3.0=x&v.4=[]&v.5=q")
	f.Add(`{"enum": [1]}`, "seen=digest-1&v=0")
	f.Add("", "seen=digest-1&v=%FF%00&note=%FF")
	f.Fuzz(func(t *testing.T, schema, body string) {
		s := newSite(t, schema, "")
		switch got := s.postText(body); got.Code {
		case http.StatusSeeOther:
			require.NoError(t, checkJSON(s.answers[0].GetValue().GetJson()))
		case http.StatusUnprocessableEntity, http.StatusConflict, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			require.Empty(t, s.answers)
		default:
			t.Fatalf("the page has the status %d", got.Code)
		}
	})
}
