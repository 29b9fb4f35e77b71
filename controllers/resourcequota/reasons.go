// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/shortlist"
)

// mostNamed bounds the resources that an Event or a reason names.
const mostNamed = 5

// Codes of the reasons why a quota is not what a user expects.
const (
	codeUsedUp     = "QuotaUsedUp"
	codeNotServed  = "KindNotServed"
	codeNotCounted = "KindNotCounted"
	codeOld        = "CountMayBeOld"
	codeHeld       = "MayBeInFlight"
)

// The reason and the action of the Event about a kind that is not counted.
const (
	eventNotCounted = "KindNotCounted"
	actionCount     = "Count"
)

// report records an Event for each kind that is not counted, when that begins and when its cause
// changes.
func (r *resourceQuotas) report(q *corev1.ResourceQuota, s *state) {
	for _, m := range s.missing {
		if !m.isNew {
			continue
		}
		r.recorder.Warning(q, eventNotCounted, actionCount, "%s", m.text())
	}
}

// text says what is not counted and why.
func (m missing) text() string {
	what := shortlist.Join(texts(m.names), mostNamed)
	switch {
	case m.gone:
		return fmt.Sprintf("%s is not counted: %v", what, m.err)
	case m.old:
		return fmt.Sprintf("the count of %s may be old: %v", what, m.err)
	}
	return fmt.Sprintf("%s is not counted, and status.used keeps its last value: %v", what, m.err)
}

// reasonsOf returns why a quota blocks, and why its status is not the count of its objects.
func reasonsOf(q *corev1.ResourceQuota, s *state) (all []controller.Reason) {
	because := func(code, text, ends string, params ...any) {
		all = append(all, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
	}
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		hard := q.Spec.Hard[name]
		if used, counted := s.plan.status.Used[name]; counted && used.Cmp(hard) >= 0 {
			because(codeUsedUp, "the quota has no room left for {resource}: used {used} of {hard}", "objects are deleted, or the quota is raised",
				"resource", name, "used", used.String(), "hard", hard.String())
		}
	}
	for _, m := range s.missing {
		if len(m.names) == 0 {
			continue // only what other kinds count for depends on it
		}
		params := []any{"resources", shortlist.Join(texts(m.names), mostNamed), "kind", m.kind.String(), "error", m.err.Error()}
		switch {
		case m.gone:
			because(codeNotServed, "{resources} is not counted: the server does not serve {kind}", "the kind is served", params...)
		case m.old:
			because(codeOld, "the count of {resources} may be old: {error}", "the kind can be watched", params...)
		default:
			because(codeNotCounted, "{resources} is not counted, and status.used keeps its last value: {error}", "the kind can be listed", params...)
		}
	}
	if len(s.plan.held) > 0 {
		because(codeHeld, "status.used has {amount} more than the objects count for: a creation may be under way, or one has failed",
			"the objects appear, or it is certain that they do not", "amount", text(s.plan.held))
	}
	return all
}

func texts(names []corev1.ResourceName) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// text writes a list on one line, in the order of its names.
func text(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		all = append(all, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return strings.Join(all, " ")
}
