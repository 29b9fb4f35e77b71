// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/nearest"
)

// UnknownError is a name that no built-in controller has.
type UnknownError struct {
	Name    string
	Nearest string   // the known name that is written most alike
	Known   []string // all names
}

func (e *UnknownError) Error() string {
	meant := ""
	if e.Nearest != "" {
		meant = fmt.Sprintf("did you mean %s? ", e.Nearest)
	}
	return fmt.Sprintf("no controller is called %q; %sthere are: %s", e.Name, meant, strings.Join(e.Known, ", "))
}

// ErrNothingSelected is the error for a choice that leaves no controller.
var ErrNothingSelected = errors.New("no controller is chosen")

// Select returns the controllers that a list of "*", "name" and "-name" chooses,
// in the order of their names. A name may be the short one. The error is an
// *UnknownError or ErrNothingSelected, wrapped. The names of controllers of
// kube-controller-manager that are not built in choose nothing, see [Absent].
//
// The first mention of a controller counts; "*" is for those that have none and are not
// off by default.
// Source: k8s.io/controller-manager/app, IsControllerEnabled.
func Select(choice []string) ([]Entry, error) {
	known := Known()
	chosen := map[string]bool{} // by full name
	all := false
	elsewhere := absent()
	for _, item := range choice {
		if item == "*" {
			all = true
			continue
		}
		name, without := strings.CutPrefix(item, "-")
		at := slices.IndexFunc(known, func(e Entry) bool { return e.Name == name || e.Alias == name })
		if _, known := elsewhere[name]; at < 0 && known {
			continue
		}
		if at < 0 {
			return nil, fmt.Errorf("choosing controllers: %w", unknown(name, known))
		}
		if _, mentioned := chosen[known[at].Name]; !mentioned {
			chosen[known[at].Name] = !without
		}
	}
	selected := slices.DeleteFunc(known, func(e Entry) bool {
		wanted, mentioned := chosen[e.Name]
		return mentioned && !wanted || !mentioned && (!all || e.OffByDefault)
	})
	if len(selected) == 0 {
		return nil, fmt.Errorf("choosing controllers: %w by %q; begin with * to have all but some", ErrNothingSelected, strings.Join(choice, ","))
	}
	return selected, nil
}

// unknown finds what may have been meant: the entry whose name or short name is near.
func unknown(name string, known []Entry) *UnknownError {
	e := &UnknownError{Name: name}
	names := map[string]string{} // full ones, by each way to write them
	var written []string
	for _, entry := range known {
		e.Known = append(e.Known, entry.Name)
		written = append(written, entry.Name, entry.Alias)
		names[entry.Name], names[entry.Alias] = entry.Name, entry.Name
	}
	e.Nearest = names[nearest.Name(name, written)]
	return e
}
