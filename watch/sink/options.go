// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"strings"
)

// Options describe one sink: exactly one of the pointers is set, and says which sort of sink it
// is. The yaml tags are the keys of the configuration.
type Options struct {
	Terminal         *Terminal         `yaml:"terminal,omitempty"`
	File             *File             `yaml:"file,omitempty"`
	Webhook          *Webhook          `yaml:"webhook,omitempty"`
	KubernetesEvents *KubernetesEvents `yaml:"kubernetesEvents,omitempty"`
	Mail             *Mail             `yaml:"mail,omitempty"`

	// Delivery says how often and how long the Runner tries.
	Delivery Delivery `yaml:"delivery,omitempty"`
}

// sort is the description of a sink of one sort.
type sort interface {
	// check reports each field that is wrong. It does not look at the disk or the environment.
	check(report reporter)
	// reads are the secrets and files that the sink reads when it is made.
	reads() []Read
	// batch is the default of Delivery.Batch.
	batch() int
	// sink makes the sink of a description that is right.
	sink(d Deps) (Sink, error)
}

// Sorts returns the sorts of sinks, as the configuration calls them.
func Sorts() []string { return []string{"terminal", "file", "webhook", "kubernetesEvents", "mail"} }

// sorts returns the descriptions in the order of Sorts; nil for a sort that is not described.
func (o Options) sorts() []sort {
	all := make([]sort, len(Sorts()))
	if o.Terminal != nil {
		all[0] = o.Terminal
	}
	if o.File != nil {
		all[1] = o.File
	}
	if o.Webhook != nil {
		all[2] = o.Webhook
	}
	if o.KubernetesEvents != nil {
		all[3] = o.KubernetesEvents
	}
	if o.Mail != nil {
		all[4] = o.Mail
	}
	return all
}

// Described returns the sorts that are described: one, if the options are right.
func (o Options) Described() (sorts []string) {
	for i, s := range o.sorts() {
		if s != nil {
			sorts = append(sorts, Sorts()[i])
		}
	}
	return sorts
}

// Sort returns which sort of sink is described, or "" if none is or several are.
func (o Options) Sort() string {
	if sorts := o.Described(); len(sorts) == 1 {
		return sorts[0]
	}
	return ""
}

// Mistakes returns every field that is wrong.
func (o Options) Mistakes() []*FieldError {
	var all []*FieldError
	report := reporter{found: &all}
	for i, s := range o.sorts() {
		if s != nil {
			s.check(report.in(Sorts()[i]))
		}
	}
	o.Delivery.check(report.in("delivery"))
	return all
}

// Validate returns an error for options of no sort or of several, and joins a [*FieldError] for
// each field that is wrong.
func (o Options) Validate() error {
	known := Sorts()
	last := len(known) - 1
	switch sorts := o.Described(); len(sorts) {
	case 0:
		return fmt.Errorf("a sink needs one of %s and %s", strings.Join(known[:last], ", "), known[last])
	case 1:
	default:
		return fmt.Errorf("a sink is of one sort, and this is of %d (%s): make them sinks of their own", len(sorts), strings.Join(sorts, ", "))
	}
	var errs []error
	for _, mistake := range o.Mistakes() {
		errs = append(errs, mistake)
	}
	return errors.Join(errs...)
}

// Read is a secret or a file of certificates that a sink reads.
type Read struct {
	// Field is the option that names it, such as webhook.headers[0].from.
	Field string
	SecretRef
}

// Reads returns what the sink reads when it is made.
func (o Options) Reads() (all []Read) {
	for i, s := range o.sorts() {
		if s == nil {
			continue
		}
		for _, read := range s.reads() {
			if !read.IsZero() {
				all = append(all, Read{Sorts()[i] + "." + read.Field, read.SecretRef})
			}
		}
	}
	return all
}

// Effective returns Delivery with the defaults of the sort of sink.
func (o Options) Effective() Delivery {
	batch := 1
	for _, s := range o.sorts() {
		if s != nil {
			batch = s.batch()
		}
	}
	return o.Delivery.withDefaults(batch)
}
