// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/controllers"
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

// Select returns those of known, in its order, that a list of "*", "name" and "-name"
// chooses. A name may be the short one. The error is an
// *UnknownError or ErrNothingSelected, wrapped. The names of controllers of
// kube-controller-manager that are not built in choose nothing, see [Absent].
//
// The first mention of a controller counts; "*" is for those that have none and are not
// off by default.
// Source: k8s.io/controller-manager/app, IsControllerEnabled.
func Select(known []*controllers.Descriptor, choice []string) ([]*controllers.Descriptor, error) {
	chosen := map[string]bool{} // by full name
	all := false
	elsewhere := absent()
	for _, item := range choice {
		if item == "*" {
			all = true
			continue
		}
		name, without := strings.CutPrefix(item, "-")
		at := slices.IndexFunc(known, func(d *controllers.Descriptor) bool { return d.Name == name || d.Alias == name })
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
	selected := slices.DeleteFunc(slices.Clone(known), func(d *controllers.Descriptor) bool {
		wanted, mentioned := chosen[d.Name]
		return mentioned && !wanted || !mentioned && (!all || d.OffByDefault)
	})
	if len(selected) == 0 {
		advice := "begin with * to have all but some"
		if missing := Absent(choice); len(missing) > 0 {
			advice = "not built in: " + strings.Join(missing, ", ")
		}
		return nil, fmt.Errorf("choosing controllers: %w by %q; %s", ErrNothingSelected, strings.Join(choice, ","), advice)
	}
	return selected, nil
}

// unknown finds what may have been meant: the controller whose name or short name is near.
func unknown(name string, known []*controllers.Descriptor) *UnknownError {
	e := &UnknownError{Name: name}
	names := map[string]string{} // full ones, by each way to write them
	var written []string
	for _, d := range known {
		e.Known = append(e.Known, d.Name)
		written = append(written, d.Name, d.Alias)
		names[d.Name], names[d.Alias] = d.Name, d.Name
	}
	e.Nearest = names[nearest.Name(name, written)]
	return e
}
