// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// chosen is which objects of its kind an informer holds. The zero value is all of them.
type chosen struct {
	namespace string          // "": all
	labels    labels.Selector // nil: any
	hidden    bool            // only those that match what metadata does not tell
}

// chosenBy reads a selection. A label selector that cannot be read is one that the server
// refuses: the informer says so, and nothing is certain of objects here.
func chosenBy(s client.Selection) chosen {
	c := chosen{namespace: s.Namespace, hidden: s.Fields != ""}
	if s.Labels == "" {
		return c
	}
	selector, err := labels.Parse(s.Labels)
	if err != nil {
		c.hidden = true
		return c
	}
	c.labels = selector
	return c
}

func (c *chosen) partial() bool { return c.namespace != "" || c.labels != nil || c.hidden }

// Reaches reports whether the informer holds objects of a namespace, "" being that of
// objects without one, or all.
func (h Handle) Reaches(namespace string) bool {
	c := &h.informer.chosen
	return c.namespace == "" || namespace == "" || c.namespace == namespace
}

// Selects reports whether the informer holds objects of this namespace and these labels.
// It is certain unless the informer selects by fields, which metadata does not tell: then
// an object that is selected may still be left out.
func (h Handle) Selects(m object.Meta) (selected, certain bool) {
	c := &h.informer.chosen
	if !h.Reaches(m.Namespace) || c.labels != nil && !c.labels.Matches(m.Labels) {
		return false, true
	}
	return true, !c.hidden
}
