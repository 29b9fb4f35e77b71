// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/shortlist"
)

// Codes of the reasons why a policy is checked again.
const (
	codeNotServed = "KindsNotServed"
	codeNotKnown  = "KindsNotKnown"
)

// unknown are the kinds of a policy whose types are not known. The policy is checked without them, and again later.
type unknown struct {
	notServed []string // the server says that it does not serve them
	silent    []silent
}

// silent is a version of a group of which the server says nothing at present, mostly because an aggregated server is away.
type silent struct {
	version schema.GroupVersion
	kinds   []string // those that the policy names
	err     error
}

// cannotRead adds a kind of a version of which the server says nothing.
func (u *unknown) cannotRead(version schema.GroupVersion, kind string, err error) {
	i := slices.IndexFunc(u.silent, func(s silent) bool { return s.version == version })
	if i < 0 {
		i = len(u.silent)
		u.silent = append(u.silent, silent{version: version, err: err})
	}
	if s := &u.silent[i]; !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
}

// none reports whether all kinds are known.
func (u *unknown) none() bool { return len(u.notServed) == 0 && len(u.silent) == 0 }

// result states why the policy was not checked with all kinds, and returns how the run ends.
//
// A kind that is not served is no failure: many a policy is there before the kind that it is about. What the server cannot say is a
// failure of the server, and so of the run: the run ends with the error. The pauses grow in both cases. But only an error is in the log and in
// the metrics, where an administrator finds a server that is away, or a right that is missing.
func (u *unknown) result(ctx context.Context) (controller.Result, error) {
	var errs []error
	for _, s := range u.silent {
		controller.Because(ctx, controller.Reason{
			Code: codeNotKnown, Text: "the expressions were not checked with all kinds that the policy names: the types of {kinds} are not known: {error}",
			Params: controller.With("kinds", shortlist.Join(s.kinds, 5), "error", s.err), Ends: "the server describes them",
		})
		errs = append(errs, s.err)
	}
	if len(u.notServed) > 0 {
		controller.Because(ctx, controller.Reason{
			Code: codeNotServed, Text: "the expressions were not checked with all kinds that the policy matches: the server does not serve {kinds}",
			Params: controller.With("kinds", shortlist.Join(u.notServed, 5)), Ends: "the server serves them",
		})
	}
	return controller.Result{Again: len(u.notServed) > 0}, errors.Join(errs...)
}
