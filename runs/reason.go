// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"strings"
)

// Reason is why a controller did not do something, or what it waits for.
type Reason struct {
	// Code is for programs: a word in CamelCase that stays the same from version to version.
	Code string `json:"code"`
	// Text is the sentence for people, with the names of parameters in braces. Words that follow a number have two forms, of which the
	// first is for 1: "{kept} {kept?Pod stays|Pods stay}".
	Text string `json:"text"`
	// Params are the parameters. They have names, numbers and times, and never values of a Secret.
	Params []Param `json:"params,omitempty"`
	// Normal says that nothing is wrong: the object is as its user wants it, such as a CronJob whose next Job is not due.
	// Package explain then looks for trouble elsewhere before it says that all is well, and why.
	Normal bool `json:"normal,omitempty"`
	// Ends says what would end the wait, if Until does not: "a change of the quota".
	Ends string `json:"ends,omitempty"`
	// Until is the object whose change would end the wait; zero if there is none, or not a single one.
	Until Object `json:"until"`
	// About is the object that the reason is about, if the key of the run does not stand for it: keys of a loop may be
	// UIDs, or stand for a whole cluster. A query for the object finds the run.
	About Object `json:"about"`
}

// Param is a parameter of a Reason.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Sentence returns the text with its parameters.
func (r Reason) Sentence() string {
	if len(r.Params) == 0 {
		return r.Text
	}
	var b strings.Builder
	for text := r.Text; ; {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		name, forms, isNoun := strings.Cut(name, "?")
		value, known := r.param(name)
		if !closed || !known {
			b.WriteByte('{')
			text = rest
			continue
		}
		if isNoun {
			one, more, _ := strings.Cut(forms, "|")
			if value = more; r.isOne(name) {
				value = one
			}
		}
		b.WriteString(value)
		text = after
	}
}

// isOne reports whether a parameter is the number 1.
func (r Reason) isOne(name string) bool {
	value, _ := r.param(name)
	return value == "1"
}

func (r Reason) param(name string) (value string, known bool) {
	for _, p := range r.Params {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// String returns the object that the reason is about, the sentence, and what would end the wait.
func (r Reason) String() string {
	text := r.Sentence()
	if r.About != (Object{}) {
		text = r.About.String() + ": " + text
	}
	switch {
	case r.Ends != "":
		return text + " (until " + r.Ends + ")"
	case r.Until != (Object{}):
		return text + " (until " + r.Until.String() + " changes)"
	}
	return text
}
