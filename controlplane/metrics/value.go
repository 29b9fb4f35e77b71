// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxValue bounds the quantities of a Value, so that sums of them in thousandths fit into
// an int64: a petabyte, or a quadrillion requests.
const maxValue = 1e15

// Value is what an annotation states about a metric. Its zero value is the constant 0.
type Value struct {
	from, to resource.Quantity
	takes    time.Duration // from one to the other; 0 is a constant
	returns  bool          // it goes back to the first in the same time, again and again
	shared   bool
	none     bool
}

// grammar is for the author of an annotation.
const grammar = `use "200m", "100m..400m over 60s" or "100m..400m every 2m", each of them also with " shared" after it, or "none"`

// ParseValue reads a Value:
//
//	200m                   constantly 200m
//	100m..400m over 60s    from 100m to 400m in the first 60 seconds, and then 400m
//	100m..400m every 2m    from 100m to 400m in a minute and back in the next, for ever
//	2 shared               2 divided by the number of Pods that share the load
//	none                   the metric does not exist
//
// Numbers are quantities of Kubernetes, durations are written as in Go. The error names
// the text and says what is possible.
func ParseValue(text string) (Value, error) {
	if text == "none" {
		return Value{none: true}, nil
	}
	var v Value
	words := strings.Fields(text)
	if n := len(words); n > 1 && words[n-1] == "shared" {
		v.shared = true
		words = words[:n-1]
	}
	var err error
	switch len(words) {
	case 1:
		if v.from, err = parseQuantity(words[0]); err != nil {
			return Value{}, err
		}
		v.to = v.from
	case 3:
		err = v.parseCourse(words[0], words[1], words[2])
	default:
		err = errors.New(grammar)
	}
	if err != nil {
		return Value{}, fmt.Errorf("%q is not a value: %w", text, err)
	}
	return v, nil
}

// parseCourse reads a value that changes, such as "1..2", "over", "60s".
func (v *Value) parseCourse(bounds, how, takes string) error {
	from, to, isCourse := strings.Cut(bounds, "..")
	if !isCourse || how != "over" && how != "every" {
		return errors.New(grammar)
	}
	var err error
	if v.from, err = parseQuantity(from); err != nil {
		return err
	}
	if v.to, err = parseQuantity(to); err != nil {
		return err
	}
	if v.takes, err = time.ParseDuration(takes); err != nil || v.takes <= 0 {
		return fmt.Errorf(`%q is not a duration such as "60s"`, takes)
	}
	v.returns = how == "every"
	return nil
}

func parseQuantity(text string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf(`%q is not a quantity such as "200m" or "64Mi"; %s`, text, grammar)
	}
	if f := q.AsApproximateFloat64(); f > maxValue || f < -maxValue {
		return resource.Quantity{}, fmt.Errorf("%q is not between -%.0g and %.0g", text, maxValue, maxValue)
	}
	return q, nil
}

// Exists reports whether there is a metric at all.
func (v Value) Exists() bool { return !v.none }

// Shared reports whether the value is a load that several Pods share.
func (v Value) Shared() bool { return v.shared }

// negative reports whether the value is below 0 at any time.
func (v Value) negative() bool { return v.from.Sign() < 0 || v.to.Sign() < 0 }

// At returns the value in thousandths at an age of what has the metric. It is the whole
// load if the value is shared.
func (v Value) At(age time.Duration) int64 {
	from, to := v.from.MilliValue(), v.to.MilliValue()
	if v.takes == 0 {
		return from
	}
	return from + int64(math.Round(float64(to-from)*v.progress(max(age, 0))))
}

// progress returns how much of the way from the first value to the second has been made,
// from 0 to 1.
func (v Value) progress(age time.Duration) float64 {
	if !v.returns {
		return float64(min(age, v.takes)) / float64(v.takes)
	}
	progress := 2 * float64(age%v.takes) / float64(v.takes)
	if progress > 1 {
		return 2 - progress
	}
	return progress
}
