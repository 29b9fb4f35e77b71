// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// episode is the time during which one thing is wrong with an object. It goes on while the thing is
// good for moments only.
type episode struct {
	Name     string
	Reason   string    // the last one
	Since    time.Time // when it began
	Good     time.Time // since when it has been good; zero while it is not
	Reported int       // the grade of the sign that was reported; 0 for none

	Restarts int64 // of the container, so far
	Before   int64 // those before the episode

	Patience time.Duration // of the first sign
	Quiet    time.Duration // of the newest sign

	unclear bool // the newest state does not say
	minor   bool
}

// begin returns the episode that begins with a sign, if one does. Before is the sign of the state
// before, or nil.
func begin(s, before *Sign, now time.Time) (e episode, begins bool) {
	restarted := before != nil && s.health == good && s.Restarts > before.Restarts && s.sort == ofCrash
	if s.health != bad && !restarted {
		return episode{}, false
	}
	e = episode{Name: s.Name, Since: now, Restarts: s.Restarts, Before: s.Restarts, Reason: s.Reason, Patience: s.patience}
	if before != nil {
		e.Before = before.Restarts
		if before.health == good && s.young {
			e.Patience = 0
		}
		if before.health == bad && s.patience == 0 { // it was bad before the watch began
			e.Reported = before.grade
		}
	}
	e.note(s, now)
	return e, true
}

// note brings the episode up to date with a sign.
func (e *episode) note(s *Sign, now time.Time) {
	e.Quiet, e.minor, e.unclear = s.quiet, s.minor, s.health == unclear
	switch s.health {
	case bad:
		e.Reason, e.Good = s.Reason, time.Time{}
	case unclear:
		e.Good = time.Time{}
	case good:
		if e.Good.IsZero() || s.Restarts > e.Restarts {
			e.Good = now
		}
	}
	e.Restarts = max(e.Restarts, s.Restarts)
}

// due returns when there is something to tell of the episode if the state stays as it is; zero for
// never. Major says that the object has an episode that is not minor.
func (e *episode) due(major bool) time.Time {
	switch {
	case e.unclear, e.minor && major && e.Reported == 0:
	case !e.Good.IsZero():
		return e.Good.Add(e.Quiet)
	case e.Reported == 0:
		return e.Since.Add(e.Patience)
	}
	return time.Time{}
}

// isWorse reports whether a sign is to be reported. Major says that the object has an episode that is
// not minor: the patience with a minor one begins when that is over.
func (e *episode) isWorse(s *Sign, now time.Time, major bool) bool {
	if s.minor && major && e.Reported == 0 {
		e.Since = now
		return false
	}
	if s.health == good {
		return e.Reported == 0 // a container that was restarted between two states
	}
	return s.health == bad && e.Reported < s.grade && !now.Before(e.Since.Add(e.Patience))
}

// isOver reports whether the episode has ended.
func (e *episode) isOver(now time.Time) bool {
	return !e.Good.IsZero() && !now.Before(e.Good.Add(e.Quiet))
}

// begun is the note of an episode that is reported.
func (e *episode) begun(s *Sign) Note {
	return Note{
		Trouble: event.Trouble{
			About: s.About, Reason: s.Reason, Message: clip(s.Message, mostMessage), ExitCode: s.ExitCode, Restarts: s.Restarts, Since: e.Since,
		},
		Text: s.text(),
	}
}

// over is the note of an episode that has ended.
func (e *episode) over(s *Sign) Note {
	return Note{
		Trouble: event.Trouble{About: s.About, Reason: e.Reason, Restarts: e.Restarts - e.Before, Since: e.Since},
		Text:    s.textOver(e.Restarts-e.Before, e.Good.Sub(e.Since)),
	}
}
