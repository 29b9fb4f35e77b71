// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"net/url"
)

// loopsNotice is what a reader of the loops must know about the managers.
type loopsNotice struct {
	Text string
	Link string // to the page of another manager; empty: there is none
}

// working is the state of a manager that works.
const working = "working"

// notices say which managers do not work, are not ready, or did not answer.
func notices(states *States) (all []loopsNotice) {
	several := len(states.Known) > 1
	for i := range states.Known {
		s := &states.Known[i]
		who := "This process"
		if s.URL != "" {
			who = "The manager " + nameOf(s)
		}
		if s.State != working && s.State != "" {
			text := fmt.Sprintf("%s does not work on anything now: %s.", who, s.State)
			if s.Holder != "" {
				text += fmt.Sprintf(" The manager that leads is %s.", s.Holder)
			}
			switch {
			case othersWork(states, i):
				text += " The loops and the runs are those of the managers that work."
			case s.Holder != "":
				text += " It has the record of the runs, and cannot be asked from here."
			}
			all = append(all, loopsNotice{Text: plain(text)})
		}
		for _, why := range s.NotReady {
			text := "Not ready: " + why
			if several {
				text = who + " is not ready: " + why
			}
			all = append(all, loopsNotice{Text: plain(text)})
		}
	}
	for _, u := range states.Unread {
		notice := loopsNotice{Text: plain("Not known: " + u.Text)}
		if at, err := url.Parse(u.URL); err == nil && at.Scheme == "https" && at.Host != "" {
			notice.Link = u.URL + Base + "/"
		}
		all = append(all, notice)
	}
	return all
}

// othersWork reports whether a manager other than that of a place works. No place is -1.
func othersWork(states *States, than int) bool {
	for i := range states.Known {
		if state := states.Known[i].State; i != than && (state == working || state == "") {
			return true
		}
	}
	return false
}

// standsByFor reports whether a manager does not work, and another one works on a loop of this name.
func standsByFor(states *States, place int, loop string) bool {
	if states.Known[place].State == working {
		return false
	}
	for i := range states.Known {
		s := &states.Known[i]
		if i == place || s.State != working {
			continue
		}
		for k := range s.Loops {
			if s.Loops[k].Name == loop {
				return true
			}
		}
	}
	return false
}

// nameOf returns the name of a manager: that of its host, or of the address if another process runs on this host.
func nameOf(s *State) string {
	at, err := url.Parse(s.URL)
	if s.URL == "" || err != nil {
		return plain(s.Instance)
	}
	return plain(cmp.Or(s.Instance, at.Host) + " at " + at.Host)
}
