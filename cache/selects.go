// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// chosen is which objects of its kind an informer holds. The zero value is all of them.
type chosen struct {
	namespace string          // "": all
	labels    labels.Selector // nil: any
	fields    fields.Requirements
	hidden    bool // there is a selector that cannot be read here
}

// chosenBy reads a selection. A selector that cannot be read is one that the server
// refuses: the informer says so, and nothing is certain of objects here.
func chosenBy(s client.Selection) chosen {
	c := chosen{namespace: s.Namespace}
	if s.Fields != "" {
		selector, err := fields.ParseSelector(s.Fields)
		if c.hidden = err != nil; !c.hidden {
			c.fields = selector.Requirements()
		}
	}
	if s.Labels != "" {
		selector, err := labels.Parse(s.Labels)
		if err != nil {
			c.hidden = true
			return c
		}
		c.labels = selector
	}
	return c
}

func (c *chosen) partial() bool {
	return c.namespace != "" || c.labels != nil || len(c.fields) > 0 || c.hidden
}

// Reaches reports whether the informer holds objects of a namespace, "" being that of
// objects without one, or all.
func (h Handle) Reaches(namespace string) bool {
	c := &h.informer.chosen
	return c.namespace == "" || namespace == "" || c.namespace == namespace
}

// Selects reports whether the informer selects an object of this name, namespace and these
// labels. It is certain unless the informer selects by fields that metadata does not tell:
// then an object that is selected may still be left out.
func (h Handle) Selects(m object.Meta) (selected, certain bool) {
	return h.selects(m.Namespace, m.Labels, func(field string) (string, bool) {
		switch field {
		case fieldName:
			return m.Name, true
		case fieldNamespace:
			return m.Namespace, true
		}
		return "", false
	})
}

// SelectsObject is as [Handle.Selects], of an object of the informer's kind as the server
// has it. It is certain of more fields: those that the type of o has under the same name.
func (h Handle) SelectsObject(o object.Object) (selected, certain bool) {
	return h.selects(o.GetNamespace(), labels.Set(o.GetLabels()), func(field string) (string, bool) {
		return fieldOf(o, h.informer.kind, field)
	})
}

func (h Handle) selects(namespace string, has labels.Labels, value func(field string) (text string, known bool)) (selected, certain bool) {
	c := &h.informer.chosen
	if !h.Reaches(namespace) || c.labels != nil && !c.labels.Matches(has) {
		return false, true
	}
	certain = !c.hidden
	for _, r := range c.fields {
		text, known := value(r.Field)
		if !known {
			certain = false
		} else if (text == r.Value) != (r.Operator != operators.NotEquals) {
			return false, true
		}
	}
	return true, certain
}
