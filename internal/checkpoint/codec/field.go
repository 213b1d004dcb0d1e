package codec

import "github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"

// The fields of all records. A record has their numbers, so numbers are only added,
// at the end, and never given anew. 0 ends an object.
const (
	_ packed.Field = iota
	fID
	fSeq
	fCheckpoint
	fRun
	fTask
	fNode
	fGraph
	fVersion
	fNamespace
	fState
	fTime
	fStep
	fKind
	fAttempt
	fPhase
	fParent
	fSource
	fNext
	fValue
	fName
	fUpdate
	fUpdated
	fStored
	fChannels
	fChannel
	fSeen
	fVersions
	fEvent
	fEvents
	fTriggers
	fInterrupts
	fFirstEvent
	fLastEvent
	fThread
	fLogID
	fCreated
	fMetadata
	fParents
	fFlag
	fSegments
	fLen
	fFresh
	fBytes
	fWrites
	fOverwrite
	fWaiting
	fFailure
	fGoto
	fInput
	fRequest
	fMessage
	fType
	fStack
	fDetails
	fReason
	fRevision
	fChange
	fIndex
	fKey
	fScope
	fSchema
	fExpires
	fExpiry
	fDefault
	fAssignees
	fResponse
	fDismissed
	fNote
	fResponder
	fOrder
	fDeadline
	fBase
	fStop
	fOutput
	fResult
	fFrom
	fFromNamespace
	fContext
	fInterruptBefore
	fInterruptAfter
	fStepLimit
	fTimeout
	fExpected
	fDiscardOpen
	fOnDisconnect
	fDelay
	fCached
	fFirstSeq
	fKeep
	fTTL
	fBranched
	fQueue
	fOpen
	fAnswered
	fNeedsAllAnswers
	fCancel
	fRollback
	fGrace
	fBy
	fFence
	fOwner
	fPreferredOwner
	fPreferredUntil
	fHandoffs
	fDue
	fDigest
	fFaults
	fRetryAt
	fRemoteTasks
	fDrift
	fDriftIgnore
	fRound
	fReplaces
	fDiffers
	fAccepted
	fStartedBy
	fActor
	fResponderHow
	fResponseMethod
	fResponseTime
	fPolicy
	fUsers
	fGroups
	fApprovals
	fVetoes
	fAgree
	fNotRequester
	fRequester
	fVotes
	fVoter
	fHow
	fMethod
	fAgrees
	fExclusive
	fEntry
	fClaimedBy
	fClaimExpires
	fTrail
	fRecords
	fPriority
	fSteps
	fNextStep
	fAfter
	fEscalates
	fAddedUsers
	fAddedGroups
	fUndo
	fEffective
	fRetractable
	fFormer
	fNotContributor
	fDelegable
	fDelegations
	fEditors
	fTo
	fSecret
	fHidden
	fPointer
	fReveal
	fLater
	fBegins
)

// Form says how the value of a field stands in JSON where its packed value, or the
// JSON itself, does not say it.
type Form uint8

// The forms of fields. A field of which records have lists as well is read by its
// first byte.
const (
	Plain    Form = iota // a text, a number, a flag, a list or an object
	Value                // of a user, as it came
	Time                 // RFC 3339
	Duration             // like 1h0m0s
	Map                  // an object of texts
	Hidden               // not shown
)

// fields are the fields in words, as dumps and records of earlier formats have them.
var fields = [...]struct {
	name string
	form Form
}{
	fID:              {"id", Plain},
	fSeq:             {"seq", Plain},
	fCheckpoint:      {"checkpoint", Plain},
	fRun:             {"run", Plain},
	fTask:            {"task", Plain},
	fNode:            {"node", Plain},
	fGraph:           {"graph", Plain},
	fVersion:         {"version", Plain},
	fNamespace:       {"namespace", Plain},
	fState:           {"state", Plain},
	fTime:            {"time", Time},
	fStep:            {"step", Plain},
	fKind:            {"kind", Plain},
	fAttempt:         {"attempt", Plain},
	fPhase:           {"phase", Plain},
	fParent:          {"parent", Plain},
	fSource:          {"source", Plain},
	fNext:            {"next", Plain},
	fValue:           {"value", Value},
	fName:            {"name", Plain},
	fUpdate:          {"update", Value},
	fUpdated:         {"updated", Time},
	fStored:          {"stored", Plain},
	fChannels:        {"channels", Plain},
	fChannel:         {"channel", Plain},
	fSeen:            {"seen", Plain},
	fVersions:        {"versions", Plain},
	fEvent:           {"event", Plain},
	fEvents:          {"events", Plain},
	fTriggers:        {"triggers", Plain},
	fInterrupts:      {"interrupts", Plain},
	fFirstEvent:      {"first_event", Plain},
	fLastEvent:       {"last_event", Plain},
	fThread:          {"thread", Plain},
	fLogID:           {"log_id", Plain},
	fCreated:         {"created", Time},
	fMetadata:        {"metadata", Map},
	fParents:         {"parents", Map},
	fFlag:            {"flag", Plain},
	fSegments:        {"segments", Plain},
	fLen:             {"len", Plain},
	fFresh:           {"fresh", Plain},
	fBytes:           {"bytes", Plain},
	fWrites:          {"writes", Plain},
	fOverwrite:       {"overwrite", Plain},
	fWaiting:         {"waiting", Plain},
	fFailure:         {"failure", Plain},
	fGoto:            {"goto", Plain},
	fInput:           {"input", Value},
	fRequest:         {"request", Plain},
	fMessage:         {"message", Plain},
	fType:            {"type", Plain},
	fStack:           {"stack", Plain},
	fDetails:         {"details", Map},
	fReason:          {"reason", Plain},
	fRevision:        {"revision", Plain},
	fChange:          {"change", Plain},
	fIndex:           {"index", Plain},
	fKey:             {"key", Plain},
	fScope:           {"scope", Plain},
	fSchema:          {"schema", Value},
	fExpires:         {"expires", Time},
	fExpiry:          {"expiry", Plain},
	fDefault:         {"default", Value},
	fAssignees:       {"assignees", Plain},
	fResponse:        {"response", Value},
	fDismissed:       {"dismissed", Plain},
	fNote:            {"note", Plain},
	fResponder:       {"responder", Plain},
	fOrder:           {"order", Plain},
	fDeadline:        {"deadline", Time},
	fBase:            {"base", Plain},
	fStop:            {"stop", Plain},
	fOutput:          {"output", Value},
	fResult:          {"result", Plain},
	fFrom:            {"from", Plain},
	fFromNamespace:   {"from_namespace", Plain},
	fContext:         {"context", Value},
	fInterruptBefore: {"interrupt_before", Plain},
	fInterruptAfter:  {"interrupt_after", Plain},
	fStepLimit:       {"step_limit", Plain},
	fTimeout:         {"timeout", Duration},
	fExpected:        {"expected", Plain},
	fDiscardOpen:     {"discard_open", Plain},
	fOnDisconnect:    {"on_disconnect", Plain},
	fDelay:           {"delay", Duration},
	fCached:          {"cached", Plain},
	fFirstSeq:        {"first_seq", Plain},
	fKeep:            {"keep", Plain},
	fTTL:             {"ttl", Duration},
	fBranched:        {"branched", Plain},
	fQueue:           {"queue", Plain},
	fOpen:            {"open", Plain},
	fAnswered:        {"answered", Plain},
	fNeedsAllAnswers: {"hold", Plain},
	fCancel:          {"cancel", Plain},
	fRollback:        {"rollback", Plain},
	fGrace:           {"grace", Duration},
	fBy:              {"by", Plain},
	fFence:           {"fence", Plain},
	fOwner:           {"owner", Plain},
	fPreferredOwner:  {"wish", Plain},
	fPreferredUntil:  {"wish_until", Time},
	fHandoffs:        {"moves", Plain},
	fDue:             {"due", Time},
	fDigest:          {"digest", Plain},
	fFaults:          {"faults", Plain},
	fRetryAt:         {"retry_at", Time},
	fRemoteTasks:     {"lent", Plain},
	fDrift:           {"drift", Plain},
	fDriftIgnore:     {"drift_ignore", Plain},
	fRound:           {"round", Plain},
	fReplaces:        {"replaces", Plain},
	fDiffers:         {"differs", Plain},
	fAccepted:        {"accepted", Plain},
	fStartedBy:       {"started_by", Plain},
	fActor:           {"actor", Plain},
	fResponderHow:    {"responder_how", Plain},
	fResponseMethod:  {"response_method", Plain},
	fResponseTime:    {"response_time", Time},
	fPolicy:          {"policy", Plain},
	fUsers:           {"users", Plain},
	fGroups:          {"groups", Plain},
	fApprovals:       {"approvals", Plain},
	fVetoes:          {"vetoes", Plain},
	fAgree:           {"agree", Plain},
	fNotRequester:    {"not_requester", Plain},
	fRequester:       {"requester", Plain},
	fVotes:           {"votes", Plain},
	fVoter:           {"voter", Plain},
	fHow:             {"how", Plain},
	fMethod:          {"method", Plain},
	fAgrees:          {"agrees", Plain},
	fExclusive:       {"exclusive", Plain},
	fEntry:           {"entry", Plain},
	fClaimedBy:       {"claimed_by", Plain},
	fClaimExpires:    {"claim_expires", Time},
	fTrail:           {"trail", Plain},
	fRecords:         {"records", Plain},
	fPriority:        {"priority", Plain},
	fSteps:           {"steps", Plain},
	fNextStep:        {"next_step", Plain},
	fAfter:           {"after", Duration},
	fEscalates:       {"escalates", Plain},
	fAddedUsers:      {"added_users", Plain},
	fAddedGroups:     {"added_groups", Plain},
	fUndo:            {"undo", Duration},
	fEffective:       {"effective", Time},
	fRetractable:     {"retractable", Plain},
	fFormer:          {"former", Plain},
	fNotContributor:  {"not_contributor", Plain},
	fDelegable:       {"delegable", Plain},
	fDelegations:     {"delegations", Plain},
	fEditors:         {"editors", Plain},
	fTo:              {"to", Plain},
	fSecret:          {"secret", Plain},
	fHidden:          {"hidden", Hidden},
	fPointer:         {"pointer", Plain},
	fReveal:          {"reveal", Plain},
	fLater:           {"later", Plain},
	fBegins:          {"begins", Time},
}

// fieldNumbers are the fields by their names.
var fieldNumbers = indexFields()

func indexFields() map[string]packed.Field {
	numbers := make(map[string]packed.Field, len(fields))
	for n := 1; n < len(fields); n++ {
		numbers[fields[n].name] = packed.Field(n)
	}
	return numbers
}

// FieldByName finds a field; ok is false when records have none of that name.
func FieldByName(name string) (f packed.Field, form Form, ok bool) {
	f, ok = fieldNumbers[name]
	return f, fields[f].form, ok
}
