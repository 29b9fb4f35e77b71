// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/setpoint-io/setpoint/object"
)

// What follows the way to a place. Neither label keys and values nor namespaces contain
// these characters. Each begins with the one before it, so that the search makes one string
// for all three.
const (
	whole    = ";"   // the way is all that the selector requires
	longer   = ";,"  // the way goes on
	compared = ";,?" // the selector requires more, which must be compared
)

// mostWays bounds how many ways lead to one selector. Requirements with so many values
// that there would be more are compared.
const mostWays = 16

// places returns the places of a selector in the tree of its namespace: those that its
// ways pass, and those where they end.
func places(namespace string, selector labels.Selector) []string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	steps, end := stepsOf(requirements)
	if len(steps) == 0 {
		return []string{namespace + "/" + end}
	}
	var found []string
	ways := []string{namespace + "/"}
	for i, s := range steps {
		var next []string
		for _, way := range ways {
			for _, value := range s.values {
				next = append(next, way+s.key+"="+value)
			}
		}
		mark := longer
		if i == len(steps)-1 {
			mark = end
		}
		for i := range next {
			next[i] += mark
		}
		found = append(found, next...)
		ways = next
	}
	return found
}

// step is a requirement that is part of a way: the label must have one of the values.
type step struct {
	key    string
	values []string
}

// stepsOf returns the requirements that are part of a selector's ways, in the order of
// keys and one for each key, and the mark at the end of the ways.
func stepsOf(requirements labels.Requirements) (steps []step, end string) {
	ways := 1
	end = whole
	for _, r := range requirements {
		values, ok := valuesOf(r)
		taken := slices.ContainsFunc(steps, func(s step) bool { return s.key == r.Key() })
		if !ok || taken || ways*len(values) > mostWays {
			end = compared
			continue
		}
		ways *= len(values)
		steps = append(steps, step{r.Key(), values})
	}
	slices.SortFunc(steps, func(a, b step) int { return strings.Compare(a.key, b.key) })
	return steps, end
}

// valuesOf returns the values of which a label must have one to meet a requirement, in
// order. ok is false if the requirement is of another form.
func valuesOf(r labels.Requirement) (values []string, ok bool) {
	operator := r.Operator()
	if operator != selection.Equals && operator != selection.DoubleEquals && operator != selection.In {
		return nil, false
	}
	return r.Values().List(), true
}

// walk follows labels through the tree. Most places that it looks up do not exist: a Pod has more labels than a selector names, and
// a dozen controllers search for each of its events. In a profile of Pods that were created beside all controllers, searches that found nothing
// were 13 % of the CPU. So a place costs one lookup, and a sequence only if it exists.
type walk[V any] struct {
	has   func(place string) bool
	at    func(place string) iter.Seq2[object.Key, V]
	match func(V) bool // compares the whole selector
	yield func(object.Key, V) bool
	set   []label  // in the order of keys
	few   [8]label // room for the labels that most objects have
}

type label struct{ key, value string }

// all yields the objects of a namespace whose selectors match labels.
func (w *walk[V]) all(namespace string, set object.Labels) {
	w.set = w.few[:0]
	for key, value := range set.All() {
		w.set = append(w.set, label{key, value})
	}
	root := namespace + "/" + compared
	_ = w.ends(root) && w.from(root[:len(root)-len(compared)], 0)
}

// from goes on from a place along each of the labels from next on. It returns false if the
// reader has had enough.
func (w *walk[V]) from(place string, next int) bool {
	for i := next; i < len(w.set); i++ {
		step := place + w.set[i].key + "=" + w.set[i].value + compared
		if !w.ends(step) {
			return false
		}
		further := step[:len(step)-len(compared)+len(longer)]
		if i+1 < len(w.set) && w.has(further) && !w.from(further, i+1) {
			return false
		}
	}
	return true
}

// ends yields the objects whose selectors end at a place, which is given with all marks.
func (w *walk[V]) ends(place string) bool {
	if here := place[:len(place)-len(compared)+len(whole)]; w.has(here) {
		for key, v := range w.at(here) {
			if !w.yield(key, v) {
				return false
			}
		}
	}
	if w.has(place) {
		for key, v := range w.at(place) {
			if w.match(v) && !w.yield(key, v) {
				return false
			}
		}
	}
	return true
}
