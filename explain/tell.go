// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/runs"
)

// teller makes an answer of facts.
type teller struct {
	facts  *Facts
	answer Answer
}

// Tell returns why an object is as it is.
func Tell(f Facts) Answer {
	t := teller{facts: &f, answer: Answer{Object: f.Object, AsOf: f.Now, Events: f.Events}}
	t.notDone()
	t.parts()
	t.loops()
	t.answer.Fields = owners(f.State)
	t.answer.Fights = t.fights()
	t.answer.Chain = t.chainOf()
	t.unknown()
	t.sentence()
	t.placement()
	return t.answer
}

// notDone lists the reasons that the last runs stated: those of the object's own keys first, the newest first.
func (t *teller) notDone() {
	for _, run := range t.facts.Present {
		for _, reason := range run.Reasons {
			t.answer.NotDone = append(t.answer.NotDone, NotDone{
				Controller: run.Controller, Key: run.Key, Object: run.Object, Reason: reason, Text: reason.String(), NextLook: run.NextLook, Since: run.Began,
			})
		}
	}
}

// mostParts is how many objects below are named.
const mostParts = 20

// parts lists the objects below that are in trouble. Those that say the same are counted in the first of them.
func (t *teller) parts() {
	first := map[string]int{} // by kind and texts
	for i := range t.facts.Below {
		p := &t.facts.Below[i]
		if len(p.Trouble) == 0 {
			continue
		}
		same := p.Object.Kind + strings.ReplaceAll(strings.Join(p.Trouble, "\n"), p.Object.Name, "")
		if at, known := first[same]; known {
			t.answer.Parts[at].Alike++
			continue
		}
		if len(t.answer.Parts) < mostParts {
			first[same] = len(t.answer.Parts)
			t.answer.Parts = append(t.answer.Parts, Trouble{Object: p.Object, Depth: p.Depth, Texts: p.Trouble})
			continue
		}
		t.answer.MoreParts++
	}
	// The deepest first: a Pod says more than the ReplicaSet that owns it.
	slices.SortStableFunc(t.answer.Parts, func(a, b Trouble) int { return cmp.Compare(b.Depth, a.Depth) })
}

func sameObject(a, b runs.Object) bool {
	return a.Group == b.Group && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

// unknown lists what could not be found out.
func (t *teller) unknown() {
	t.answer.Unknown = append(t.answer.Unknown, t.facts.Unread...)
	if p := t.facts.Placement; p != nil {
		t.answer.Unknown = append(t.answer.Unknown, p.Unsure...)
	}
	switch n := t.facts.HiddenRuns; {
	case n == 1:
		t.answer.Unknown = append(t.answer.Unknown, "what 1 run is about: the user may not get its object")
	case n > 1:
		t.answer.Unknown = append(t.answer.Unknown, fmt.Sprintf("what %d runs are about: the user may not get their objects", n))
	}
	switch n := t.facts.HiddenNames; {
	case n == 1:
		t.answer.Unknown = append(t.answer.Unknown, "1 name of an object in the record: the user may not get that object")
	case n > 1:
		t.answer.Unknown = append(t.answer.Unknown, fmt.Sprintf("%d names of objects in the record: the user may not get these objects", n))
	}
	switch {
	case !t.facts.Recorded:
		t.answer.Unknown = append(t.answer.Unknown, "what controllers did and why: "+t.facts.NotRecorded)
	case !t.facts.Since.IsZero():
		t.answer.Unknown = append(t.answer.Unknown, "runs older than what is kept: since "+t.facts.Since.UTC().Format(time.RFC3339))
	}
}

// sentence chooses what the answer says first.
func (t *teller) sentence() {
	say := func(code, text, detail string, since time.Time) {
		t.answer.Code = code
		if t.answer.lasting = text + "\n" + detail; code == CodeFight || code == CodeHotLoop {
			t.answer.lasting = strings.Map(noDigits, t.answer.lasting)
		}
		if !since.IsZero() {
			t.answer.Since = &since
			text += ", since " + ago(t.facts.Now, since)
		}
		if detail != "" {
			text = strings.TrimRight(text, ". ") + "; " + detail
		}
		t.answer.Sentence = capital(strings.TrimRight(text, ". ")) + "."
	}
	state := jsontree.Tree{Value: t.facts.State}
	deleting, _ := time.Parse(time.RFC3339, state.Text("metadata", "deletionTimestamp"))
	own, held := t.ownReason(), t.held(true)
	switch {
	case t.facts.State == nil:
		say(CodeGone, t.gone(), "", time.Time{})
	case !deleting.IsZero():
		say(CodeDeleting, deletionOf(state), cmp.Or(heldText(held), deletionWaits(own, state), t.detail()), deleting)
	case len(t.answer.Fights) > 0:
		f := t.answer.Fights[0]
		text := fmt.Sprintf("%s has changed %s %d times within %d min", subject(f.Controller), f.Field, f.Times, int(fightTime.Minutes()))
		if len(f.Others) > 0 {
			text += ": it fights with " + strings.Join(f.Others, ", ")
		} else {
			text += ", each time after another program had changed the object: they fight"
		}
		say(CodeFight, text, "", time.Time{})
	case held != nil:
		say(CodeOwnWrite, heldText(held), "", *held.Since)
	case own != nil:
		say(CodeWaits, own.Reason.Sentence(), t.detail(), own.Since)
	case len(t.facts.Trouble) > 0:
		detail := t.detail()
		if len(t.answer.Parts) > 0 && t.answer.Parts[0].Texts[0] == t.facts.Trouble[0] {
			detail = "" // the object below says the same
		}
		say(CodeTrouble, fitting(t.facts.Trouble[0]), detail, time.Time{})
	case len(t.answer.Parts) > 0, t.held(false) != nil:
		say(CodeBelow, t.detail(), "", time.Time{})
	case t.anyReason() != nil:
		n := t.anyReason()
		say(CodeBelow, n.about().Kind+" "+n.about().Name+": "+n.Reason.Sentence(), "", n.Since)
	default:
		t.fallback(say)
	}
}

// noDigits is for strings.Map: it drops digits.
func noDigits(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}

// fallback says what is left to be said when neither a reason nor a state names trouble.
func (t *teller) fallback(say func(code, text, detail string, since time.Time)) {
	for _, l := range t.answer.Loops {
		switch {
		case l.Error != "":
			text := subject(l.Controller) + " fails: " + l.Error
			if l.NextLook != nil {
				text += ", and tries again at " + l.NextLook.Local().Format(time.TimeOnly)
			}
			say(CodeFails, text, "", time.Time{})
			return
		case l.Hot:
			say(CodeHotLoop, fmt.Sprintf("%s has run %d times in a row without effect", subject(l.Controller), l.Idle), l.Repeats, time.Time{})
			return
		case l.State != nil && len(l.State.Informers) > 0:
			say(CodeLags, subject(l.Controller)+" does not know the newest state: "+lagText(&l.State.Informers[0]), "", time.Time{})
			return
		}
	}
	if !t.facts.Recorded {
		say(CodeNotMuch, "the state of the object names no trouble, and no manager could say more", "", time.Time{})
		return
	}
	why := "no controller waits for anything, and no state names trouble"
	normal := t.reason(func(n *NotDone) bool { return n.Reason.Normal && sameObject(n.about(), t.facts.Object) })
	if normal != nil {
		why = normal.Reason.Sentence()
	}
	say(CodeAllIsWell, "all is as it should be: "+why, "", time.Time{})
}

// ownReason returns the newest reason that a controller has stated about the object itself, other than a normal state.
func (t *teller) ownReason() *NotDone {
	return t.reason(func(n *NotDone) bool { return !n.Reason.Normal && sameObject(n.about(), t.facts.Object) })
}

// anyReason returns the newest reason about any object, other than a normal state.
func (t *teller) anyReason() *NotDone {
	return t.reason(func(n *NotDone) bool { return !n.Reason.Normal && n.about() != (runs.Object{}) })
}

// reason returns the newest reason of some kind.
func (t *teller) reason(is func(*NotDone) bool) *NotDone {
	for i := range t.answer.NotDone {
		if n := &t.answer.NotDone[i]; is(n) {
			return n
		}
	}
	return nil
}

// about returns the object that a reason is about.
func (n *NotDone) about() runs.Object {
	if n.Reason.About != (runs.Object{}) {
		return n.Reason.About
	}
	return n.Object
}

// fitting leaves out what the scheduler says about preemption, after why no Node fits.
func fitting(text string) string {
	before, _, _ := strings.Cut(text, " preemption: ")
	return before
}

// detail is the own write for which the controller of an object below waits. Without one it is why the deepest object below is in trouble: as a controller has stated it, or else as its state says. Without
// such an object it is what a controller has stated about another object.
func (t *teller) detail() string {
	if held := t.held(false); held != nil {
		return held.Object.Kind + " " + held.Object.Name + ": " + heldText(held)
	}
	if len(t.answer.Parts) == 0 {
		if n := t.reason(func(n *NotDone) bool {
			return !n.Reason.Normal && n.about().Name != "" && !sameObject(n.about(), t.facts.Object)
		}); n != nil {
			return n.about().Kind + " " + n.about().Name + ": " + n.Reason.Sentence()
		}
		return ""
	}
	p := t.answer.Parts[0]
	text := fitting(p.Texts[0])
	if n := t.reason(func(n *NotDone) bool { return !n.Reason.Normal && sameObject(n.about(), p.Object) }); n != nil {
		text = n.Reason.Sentence()
	}
	text = p.Object.Kind + " " + p.Object.Name + ": " + text
	if p.Alike > 0 {
		text += " (and " + alike(p.Alike) + ")"
	}
	return text
}
