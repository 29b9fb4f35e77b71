// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/revisions"
)

// list returns revisions of these numbers, named by them.
func list(of ...int64) []*appsv1.ControllerRevision {
	var all []*appsv1.ControllerRevision
	for _, number := range of {
		all = append(all, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(number)}, Revision: number})
	}
	return all
}

func names(of []*appsv1.ControllerRevision) string {
	var all []string
	for _, r := range of {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestSurplus(t *testing.T) {
	inUse := func(r *appsv1.ControllerRevision) bool { return r.Revision == 1 || r.Revision == 4 }
	for _, c := range []struct {
		limit       int32
		idle, ofAll string
	}{
		{-1, "", ""},
		{0, "2 3 5", "2 3 5"},
		{1, "2 3", "2 3 5"},
		{2, "2", "2 3 5"},
		{3, "", "2 3"},
		{4, "", "2"},
		{5, "", ""},
		{math.MaxInt32, "", ""},
	} {
		if got := names(revisions.Surplus(list(1, 2, 3, 4, 5), c.limit, inUse)); got != c.idle {
			t.Errorf("limit %d: surplus is %q, want %q", c.limit, got, c.idle)
		}
		if got := names(revisions.SurplusOfAll(list(1, 2, 3, 4, 5), c.limit, inUse)); got != c.ofAll {
			t.Errorf("limit %d of all: surplus is %q, want %q", c.limit, got, c.ofAll)
		}
	}
}

func TestNumbersDoNotOverflow(t *testing.T) {
	for want, of := range map[int64][]int64{1: nil, 8: {2, 7}, math.MaxInt64: {math.MaxInt64}} {
		if got := revisions.Next(list(of...)); got != want {
			t.Errorf("after %v comes %d, want %d", of, got, want)
		}
	}
}

func TestALongNameIsCut(t *testing.T) {
	set := database("db-uid", "db:1")
	set.Name = strings.Repeat("d", 253)
	if name := stateOf(set).Revision(1, nil).Name; len(name) > 253 || !strings.HasPrefix(name, strings.Repeat("d", 223)+"-") {
		t.Errorf("the name of a StatefulSet's revision is %s", name)
	}
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.Repeat("d", 253)}}
	state, err := revisions.DaemonSet(daemon)
	if err != nil {
		t.Fatal(err)
	}
	if name := state.Revision(1, nil).Name; len(name) != 253 {
		t.Errorf("the name of a DaemonSet's revision has %d bytes: %s", len(name), name)
	}
}

func TestDataThatAreNoTemplateAreAnError(t *testing.T) {
	for _, data := range []string{"", "{", "{}", `{"spec":{"template":null}}`, `{"spec":{"template":[]}}`} {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-1"}}
		r.Data.Raw = []byte(data)
		if _, err := revisions.Template(r); err == nil || !strings.Contains(err.Error(), "ControllerRevision shop/db-1") {
			t.Errorf("%q: the error is %v", data, err)
		}
		if stateOf(database("db-uid", "db:1")).Same(r) {
			t.Errorf("%q asks for Pods", data)
		}
	}
}
