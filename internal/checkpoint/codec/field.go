package codec

// field names a field of a record. Packed records have its number, so numbers
// are only added, at the end, and never given anew.
type field uint8

// The fields of all records. 0 ends an object.
const (
	fEnd field = iota
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
)

// jsonName is the name of a field as JSON has it, "" for one that this version does
// not know.
//
//nolint:cyclop,funlen // a table
func (f field) jsonName() string {
	switch f {
	case fID:
		return "id"
	case fSeq:
		return "seq"
	case fCheckpoint:
		return "checkpoint"
	case fRun:
		return "run"
	case fTask:
		return "task"
	case fNode:
		return "node"
	case fGraph:
		return "graph"
	case fVersion:
		return "version"
	case fNamespace:
		return "namespace"
	case fState:
		return "state"
	case fTime:
		return "time"
	case fStep:
		return "step"
	case fKind:
		return "kind"
	case fAttempt:
		return "attempt"
	case fPhase:
		return "phase"
	case fParent:
		return "parent"
	case fSource:
		return "source"
	case fNext:
		return "next"
	case fValue:
		return "value"
	case fName:
		return "name"
	case fUpdate:
		return "update"
	case fUpdated:
		return "updated"
	case fStored:
		return "stored"
	case fChannels:
		return "channels"
	case fChannel:
		return "channel"
	case fSeen:
		return "seen"
	case fVersions:
		return "versions"
	case fEvent:
		return "event"
	case fEvents:
		return "events"
	case fTriggers:
		return "triggers"
	case fInterrupts:
		return "interrupts"
	case fFirstEvent:
		return "first_event"
	case fLastEvent:
		return "last_event"
	case fThread:
		return "thread"
	case fLogID:
		return "log_id"
	case fCreated:
		return "created"
	case fMetadata:
		return "metadata"
	case fParents:
		return "parents"
	case fFlag:
		return "flag"
	case fSegments:
		return "segments"
	case fLen:
		return "len"
	case fFresh:
		return "fresh"
	case fBytes:
		return "bytes"
	case fWrites:
		return "writes"
	case fOverwrite:
		return "overwrite"
	case fWaiting:
		return "waiting"
	case fFailure:
		return "failure"
	case fGoto:
		return "goto"
	case fInput:
		return "input"
	case fRequest:
		return "request"
	case fMessage:
		return "message"
	case fType:
		return "type"
	case fStack:
		return "stack"
	case fDetails:
		return "details"
	case fReason:
		return "reason"
	case fRevision:
		return "revision"
	case fChange:
		return "change"
	case fIndex:
		return "index"
	case fKey:
		return "key"
	case fScope:
		return "scope"
	case fSchema:
		return "schema"
	case fExpires:
		return "expires"
	case fExpiry:
		return "expiry"
	case fDefault:
		return "default"
	case fAssignees:
		return "assignees"
	case fResponse:
		return "response"
	case fDismissed:
		return "dismissed"
	case fNote:
		return "note"
	case fResponder:
		return "responder"
	case fOrder:
		return "order"
	case fDeadline:
		return "deadline"
	case fBase:
		return "base"
	case fStop:
		return "stop"
	case fOutput:
		return "output"
	case fResult:
		return "result"
	case fFrom:
		return "from"
	case fFromNamespace:
		return "from_namespace"
	case fContext:
		return "context"
	case fInterruptBefore:
		return "interrupt_before"
	case fInterruptAfter:
		return "interrupt_after"
	case fStepLimit:
		return "step_limit"
	case fTimeout:
		return "timeout"
	case fExpected:
		return "expected"
	case fDiscardOpen:
		return "discard_open"
	case fOnDisconnect:
		return "on_disconnect"
	case fDelay:
		return "delay"
	case fCached:
		return "cached"
	case fFirstSeq:
		return "first_seq"
	case fKeep:
		return "keep"
	case fTTL:
		return "ttl"
	case fBranched:
		return "branched"
	case fQueue:
		return "queue"
	case fOpen:
		return "open"
	case fAnswered:
		return "answered"
	case fNeedsAllAnswers:
		return "hold"
	case fCancel:
		return "cancel"
	case fRollback:
		return "rollback"
	case fGrace:
		return "grace"
	case fBy:
		return "by"
	case fFence:
		return "fence"
	case fOwner:
		return "owner"
	case fPreferredOwner:
		return "wish"
	case fPreferredUntil:
		return "wish_until"
	case fHandoffs:
		return "moves"
	case fDue:
		return "due"
	case fDigest:
		return "digest"
	case fFaults:
		return "faults"
	case fRetryAt:
		return "retry_at"
	case fRemoteTasks:
		return "lent"
	case fDrift:
		return "drift"
	case fDriftIgnore:
		return "drift_ignore"
	case fRound:
		return "round"
	case fReplaces:
		return "replaces"
	case fDiffers:
		return "differs"
	case fAccepted:
		return "accepted"
	default:
		return ""
	}
}
