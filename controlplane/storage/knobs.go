// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Prefix is what the annotations of claims and volumes and the parameters of classes begin with.
const Prefix = "sim.setpoint.io/"

// Operations of the driver.
const (
	Provision = "provision" // make a volume
	Delete    = "delete"    // delete a volume
	Resize    = "resize"    // make a volume larger
	Modify    = "modify"    // give a volume another VolumeAttributesClass
	Attach    = "attach"    // attach a volume to a Node
	Detach    = "detach"    // detach a volume from a Node
)

var operationNames = []string{Provision, Delete, Resize, Modify, Attach, Detach}

// What comes after [Prefix] and an operation.
const (
	after     = "-after"
	failFirst = "-fail-first"
)

// Parameters of a class alone.
const (
	capacityParameter = Prefix + "capacity" // of all volumes of the class together
	topologyParameter = Prefix + "topology" // from where a volume can be reached: "zone" or "node" of its first Pod
)

// The answers of an operation.
const (
	answerOK    = "ok"
	answerError = "error"
	answerNever = "never"
)

// knobs say how one operation on one object goes.
type knobs struct {
	answer string
	after  time.Duration
	failed int // so many attempts fail

	// refused is why the operation cannot be tried, whatever the annotations say; nil if it can.
	refused error
}

// knobsOf reads the knobs of an operation. Annotations come before parameters. A value that has no
// meaning counts as not given, and problems names it.
func knobsOf(operation string, annotations, parameters map[string]string) (k knobs, problems []string) {
	k.answer = answerOK
	value := func(suffix string) (name, text string, ok bool) {
		name = Prefix + operation + suffix
		if text, ok = annotations[name]; !ok {
			text, ok = parameters[name]
		}
		return name, text, ok
	}
	if name, text, ok := value(""); ok {
		if text != answerOK && text != answerError && text != answerNever {
			problems = append(problems, fmt.Sprintf("%s is ignored: %q is not \"ok\", \"error\" or \"never\"", name, text))
		} else {
			k.answer = text
		}
	}
	if name, text, ok := value(after); ok {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			problems = append(problems, fmt.Sprintf("%s is ignored: %q is not a duration such as \"5s\"", name, text))
		} else {
			k.after = d
		}
	}
	if name, text, ok := value(failFirst); ok {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s is ignored: %q is not a number of attempts", name, text))
		} else {
			k.failed = int(n)
		}
	}
	return k, problems
}

// inherited returns the knobs that a volume takes over from its claim and its class, so that they
// hold when these are gone: all but those of its own creation.
func inherited(annotations, parameters map[string]string) map[string]string {
	out := map[string]string{}
	for _, from := range []map[string]string{parameters, annotations} {
		for name, value := range from {
			operation, ok := strings.CutPrefix(name, Prefix)
			if !ok {
				continue
			}
			operation = strings.TrimSuffix(strings.TrimSuffix(operation, after), failFirst)
			if operation != Provision && slices.Contains(operationNames, operation) {
				out[name] = value
			}
		}
	}
	return out
}

// unknown returns the annotations of a claim that begin with [Prefix] and mean nothing.
func unknown(annotations map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		operation, ok := strings.CutPrefix(name, Prefix)
		if !ok {
			continue
		}
		operation = strings.TrimSuffix(strings.TrimSuffix(operation, after), failFirst)
		if !slices.Contains(operationNames, operation) {
			problems = append(problems, fmt.Sprintf("annotation %s is ignored: no such annotation; a claim knows %sOP, %sOP%s and %sOP%s, with one of %s for OP",
				name, Prefix, Prefix, after, Prefix, failFirst, strings.Join(operationNames, ", ")))
		}
	}
	return problems
}

// limitOf returns the bytes that all volumes of a class may have together; 0 is no limit.
func limitOf(parameters map[string]string) (int64, error) {
	text, ok := parameters[capacityParameter]
	if !ok {
		return 0, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() <= 0 {
		return 0, fmt.Errorf("parameter %s of the storage class: %q is not a quantity such as \"10Gi\"", capacityParameter, text)
	}
	return quantity.Value(), nil
}
