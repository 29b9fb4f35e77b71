// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"fmt"
	"strings"
	"time"
)

const (
	// mostMessage is how many bytes of a message a trouble has.
	mostMessage = 1024
	// mostSaid is how many bytes of a message a sentence has.
	mostSaid = 200
)

// text says what is wrong: "container web CrashLoopBackOff: Error, exit 1, 3 restarts".
func (s *Sign) text() string { return s.sentence(mostSaid) }

// sentence is the text with a message of so many bytes at most.
func (s *Sign) sentence(most int) string {
	what := s.Reason
	var why []string
	message := clip(strings.Join(strings.Fields(s.Message), " "), most)
	switch s.sort {
	case ofCondition:
		what = strings.TrimPrefix(s.About, "condition ") + " " + s.Status
		if s.Reason != "" {
			what += " (" + s.Reason + ")"
		}
	case ofCrash:
		what = s.About + " " + s.Reason
		if s.ExitCode != 0 {
			why = append(why, fmt.Sprintf("exit %d", s.ExitCode))
		}
		if s.Restarts > 0 {
			why = append(why, count(s.Restarts, "restart"))
		}
	case ofImage, ofConfig:
		what = s.About + " " + s.Reason
	case ofScheduling, ofObject:
	}
	if message != "" {
		why = append(why, message)
	}
	if len(why) == 0 {
		return what
	}
	return what + ": " + strings.Join(why, ", ")
}

// textOver says that it is well again: "container web runs again after 3 restarts in 2 min".
func (s *Sign) textOver(restarts int64, after time.Duration) string {
	switch s.sort {
	case ofCondition:
		name := strings.TrimPrefix(s.About, "condition ")
		if s.Status == "True" {
			return name + " again after " + span(after)
		}
		return name + " over after " + span(after)
	case ofCrash:
		text := s.About + " runs again"
		if s.quiet == 0 {
			text = s.About + " succeeded"
		}
		if restarts > 0 {
			return text + " after " + count(restarts, "restart") + " in " + span(after)
		}
		return text + " after " + span(after)
	case ofImage:
		return "image of " + s.About + " pulled after " + span(after)
	case ofConfig:
		return s.About + " created after " + span(after)
	case ofScheduling:
		if s.node != "" {
			return "scheduled on " + s.node + " after " + span(after)
		}
		return "scheduled after " + span(after)
	case ofObject:
	}
	return s.Reason + " over after " + span(after)
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// span returns "8 s", "12 min", "3 h", "5 d".
func span(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f d", d.Hours()/24)
}

// clip returns so many bytes of a text at most, whole characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
