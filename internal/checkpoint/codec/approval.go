package codec

import (
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
	"github.com/graphd-dev/graphd/internal/trail"
)

func writePolicy(w *packed.Writer, p *approval.Policy) {
	if p == nil {
		return
	}
	w.OpenObject(fPolicy)
	w.WriteStrings(fUsers, p.Users)
	w.WriteStrings(fGroups, p.Groups)
	writeInt(w, fApprovals, p.Approvals)
	writeInt(w, fVetoes, p.Vetoes)
	writeString(w, fAgree, p.Agree)
	w.WriteBool(fNotRequester, p.NotRequester)
	writeString(w, fRequester, p.Requester)
	w.WriteBool(fExclusive, p.Exclusive)
	w.WriteBool(fNotContributor, p.NotContributor)
	w.WriteBool(fDelegable, p.Delegable)
	if len(p.RevealUsers)+len(p.RevealGroups) > 0 {
		w.OpenObject(fReveal)
		w.WriteStrings(fUsers, p.RevealUsers)
		w.WriteStrings(fGroups, p.RevealGroups)
		w.CloseObject()
	}
	w.CloseObject()
}

func readPolicy(rd *packed.Reader) *approval.Policy {
	p := &approval.Policy{}
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fUsers:
			p.Users = rd.ReadStrings()
		case fGroups:
			p.Groups = rd.ReadStrings()
		case fApprovals:
			p.Approvals = int(rd.ReadInt())
		case fVetoes:
			p.Vetoes = int(rd.ReadInt())
		case fAgree:
			p.Agree = rd.ReadString()
		case fNotRequester:
			p.NotRequester = rd.ReadBool()
		case fRequester:
			p.Requester = rd.ReadString()
		case fExclusive:
			p.Exclusive = rd.ReadBool()
		case fNotContributor:
			p.NotContributor = rd.ReadBool()
		case fDelegable:
			p.Delegable = rd.ReadBool()
		case fReveal:
			readRevealers(rd, p)
		default:
			rd.SkipValue()
		}
	})
	return p
}

func readRevealers(rd *packed.Reader, p *approval.Policy) {
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fUsers:
			p.RevealUsers = rd.ReadStrings()
		case fGroups:
			p.RevealGroups = rd.ReadStrings()
		default:
			rd.SkipValue()
		}
	})
}

func writeDelegations(w *packed.Writer, list []approval.Delegation) {
	if len(list) == 0 {
		return
	}
	w.OpenArray(fDelegations)
	for i := range list {
		w.OpenElement()
		writeString(w, fFrom, list[i].From)
		writeString(w, fTo, list[i].To)
		w.CloseObject()
	}
	w.CloseArray()
}

func readDelegations(rd *packed.Reader) (list []approval.Delegation) {
	rd.ReadArray(func() {
		var d approval.Delegation
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fFrom:
				d.From = rd.ReadString()
			case fTo:
				d.To = rd.ReadString()
			default:
				rd.SkipValue()
			}
		})
		list = append(list, d)
	})
	return list
}

func writeVotes(w *packed.Writer, votes []approval.Vote) {
	if len(votes) == 0 {
		return
	}
	w.OpenArray(fVotes)
	for i := range votes {
		v := &votes[i]
		w.OpenElement()
		writeString(w, fVoter, v.Voter)
		writeString(w, fHow, v.How)
		writeString(w, fMethod, v.Method)
		w.WriteTime(fTime, v.Time)
		w.WriteBool(fAgrees, v.Agrees)
		w.WriteJSON(fValue, v.Value)
		writeString(w, fNote, v.Note)
		writeString(w, fRequest, v.Request)
		writeInt(w, fEntry, v.Entry)
		writeParts(w, fHidden, v.Hidden)
		w.CloseObject()
	}
	w.CloseArray()
}

func readVotes(rd *packed.Reader) []approval.Vote {
	var votes []approval.Vote
	rd.ReadArray(func() {
		var v approval.Vote
		rd.ReadObject(func(f packed.Field) { readVoteField(rd, &v, f) })
		votes = append(votes, v)
	})
	return votes
}

func readVoteField(rd *packed.Reader, v *approval.Vote, f packed.Field) {
	switch f {
	case fVoter:
		v.Voter = rd.ReadString()
	case fHow:
		v.How = rd.ReadString()
	case fMethod:
		v.Method = rd.ReadString()
	case fTime:
		v.Time = rd.ReadTime()
	case fAgrees:
		v.Agrees = rd.ReadBool()
	case fValue:
		v.Value = rd.ReadJSON()
	case fNote:
		v.Note = rd.ReadString()
	case fRequest:
		v.Request = rd.ReadString()
	case fEntry:
		v.Entry = int(rd.ReadInt())
	case fHidden:
		v.Hidden = readParts(rd)
	default:
		rd.SkipValue()
	}
}

// writeSteps writes how urgent an interrupt is, and what happens while a question is undecided.
func writeSteps(w *packed.Writer, in *checkpoint.Interrupt) {
	writeInt(w, fPriority, int(in.Priority))
	writeInt(w, fNextStep, in.NextStep)
	changes := in.PropertyChanges()
	w.WriteStrings(fAddedUsers, changes.AddedUsers)
	w.WriteStrings(fAddedGroups, changes.AddedGroups)
	if len(in.Steps) == 0 {
		return
	}
	w.OpenArray(fSteps)
	for i := range in.Steps {
		s := &in.Steps[i]
		w.OpenElement()
		w.WriteDuration(fAfter, s.After)
		w.WriteBool(fEscalates, s.Escalates)
		w.WriteStrings(fUsers, s.Users)
		w.WriteStrings(fGroups, s.Groups)
		writeInt(w, fPriority, int(s.Priority))
		w.CloseObject()
	}
	w.CloseArray()
}

func readSteps(rd *packed.Reader) []approval.Step {
	var steps []approval.Step
	rd.ReadArray(func() {
		var s approval.Step
		rd.ReadObject(func(f packed.Field) {
			switch f {
			case fAfter:
				s.After = rd.ReadDuration()
			case fEscalates:
				s.Escalates = rd.ReadBool()
			case fUsers:
				s.Users = rd.ReadStrings()
			case fGroups:
				s.Groups = rd.ReadStrings()
			case fPriority:
				s.Priority = approval.Priority(rd.ReadInt())
			default:
				rd.SkipValue()
			}
		})
		steps = append(steps, s)
	})
	return steps
}

// writeClaim writes who has claimed an interrupt.
func writeClaim(w *packed.Writer, in *checkpoint.Interrupt) {
	writeString(w, fClaimedBy, in.ClaimedBy)
	w.WriteTime(fClaimExpires, in.ClaimExpires)
}

func writeTrail(w *packed.Writer, l *trail.Log) {
	if l.IsEmpty() {
		return
	}
	w.OpenObject(fTrail)
	w.WriteStrings(fRecords, l.Records)
	writeString(w, fDigest, l.Digest)
	writeString(w, fState, l.State)
	w.CloseObject()
}

func readTrail(rd *packed.Reader) trail.Log {
	var l trail.Log
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fRecords:
			l.Records = rd.ReadStrings()
		case fDigest:
			l.Digest = rd.ReadString()
		case fState:
			l.State = rd.ReadString()
		default:
			rd.SkipValue()
		}
	})
	return l
}

// readPeopleField reads a field of who may answer, and of what happened.
func readPeopleField(rd *packed.Reader, in *checkpoint.Interrupt, f packed.Field) {
	switch f {
	case fPolicy:
		in.Policy = readPolicy(rd)
	case fVotes:
		in.Votes = readVotes(rd)
	case fClaimedBy:
		in.ClaimedBy = rd.ReadString()
	case fClaimExpires:
		in.ClaimExpires = rd.ReadTime()
	case fTrail:
		in.Trail = readTrail(rd)
	default:
		readStepField(rd, in, f)
	}
}

// readPropertyChange reads a field of what became of the properties of an interrupt.
func readPropertyChange(rd *packed.Reader, c *checkpoint.PropertyChanges, f packed.Field) {
	switch f {
	case fAddedUsers:
		c.AddedUsers = rd.ReadStrings()
	case fAddedGroups:
		c.AddedGroups = rd.ReadStrings()
	case fDelegations:
		c.Delegations = readDelegations(rd)
	case fFormer:
		c.Former = rd.ReadStrings()
	default:
		rd.SkipValue()
	}
}

// readStepField reads a field of what happens to an interrupt by itself.
func readStepField(rd *packed.Reader, in *checkpoint.Interrupt, f packed.Field) {
	switch f {
	case fPriority:
		in.Priority = approval.Priority(rd.ReadInt())
	case fNextStep:
		in.NextStep = int(rd.ReadInt())
	case fSteps:
		in.Steps = readSteps(rd)
	case fUndo:
		in.Undo = rd.ReadDuration()
	case fAddedUsers, fAddedGroups, fDelegations, fFormer:
		changes := in.PropertyChanges()
		readPropertyChange(rd, &changes, f)
		in.SetPropertyChanges(changes)
	case fNeedsAllAnswers:
		in.NeedsAllAnswers = rd.ReadBool()
	case fEffective:
		in.Effective = rd.ReadTime()
	case fSecret:
		in.Secret = rd.ReadStrings()
	case fHidden:
		in.Hidden = readHidden(rd)
	default:
		rd.SkipValue()
	}
}
