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

// described is a description with the name of its sort.
type described struct {
	name string
	sort
}

// described returns the descriptions, in the order of Sorts.
func (o Options) described() (all []described) {
	for i, of := range []struct {
		set  bool
		sort sort
	}{
		{o.Terminal != nil, o.Terminal},
		{o.File != nil, o.File},
		{o.Webhook != nil, o.Webhook},
		{o.KubernetesEvents != nil, o.KubernetesEvents},
		{o.Mail != nil, o.Mail},
	} {
		if of.set {
			all = append(all, described{Sorts()[i], of.sort})
		}
	}
	return all
}

// Described returns the sorts that are described: one, if the options are right.
func (o Options) Described() (sorts []string) {
	for _, d := range o.described() {
		sorts = append(sorts, d.name)
	}
	return sorts
}

// Sort returns which sort of sink is described, or "" if none is or several are.
func (o Options) Sort() string {
	if all := o.described(); len(all) == 1 {
		return all[0].name
	}
	return ""
}

// Mistakes returns every field that is wrong.
func (o Options) Mistakes() []*FieldError {
	var all []*FieldError
	report := reporter{found: &all}
	for _, d := range o.described() {
		d.check(report.in(d.name))
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
	for _, d := range o.described() {
		for _, read := range d.reads() {
			if !read.IsZero() {
				all = append(all, Read{d.name + "." + read.Field, read.SecretRef})
			}
		}
	}
	return all
}

// Effective returns Delivery with the defaults of the sort of sink.
func (o Options) Effective() Delivery {
	batch := 1
	for _, d := range o.described() {
		batch = d.batch()
	}
	return o.Delivery.withDefaults(batch)
}
