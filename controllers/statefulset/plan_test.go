// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// some makes the Pods of a test from changes: nil is an ordinal without a Pod. A Pod is of the new
// revision, unless it is changed by old.
func some(set *appsv1.StatefulSet, from int, states ...func(*corev1.Pod)) (all []*corev1.Pod) {
	for i, state := range states {
		if state != nil {
			all = append(all, pod(set, from+i, newRevision, state))
		}
	}
	return all
}

// old returns a state of a Pod of the old revision.
func old(state func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[appsv1.StatefulSetRevisionLabel] = oldRevision
		state(p)
	}
}

func pending(*corev1.Pod) {}

type state = func(*corev1.Pod)

func TestPodsComeAndGoInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		set    *appsv1.StatefulSet
		from   int // ordinal of the first Pod
		pods   []state
		want   string
		reason string
	}{
		"the first":                                {web(3), 0, nil, "create web-0 of new", ""},
		"the next":                                 {web(3), 0, []state{ready}, "create web-1 of new", ""},
		"none while one is Pending":                {web(3), 0, []state{pending}, "", codeOrder},
		"none while one is not ready":              {web(3), 0, []state{unready}, "", codeOrder},
		"none while one terminates":                {web(3), 0, []state{func(p *corev1.Pod) { ready(p); leaving(p) }}, "", codeOrder},
		"none before one is available":             {web(3, minReady(10)), 0, []state{readySince(midday.Add(-9 * time.Second))}, "", codeOrder},
		"the next after that":                      {web(3, minReady(10)), 0, []state{readySince(midday.Add(-10 * time.Second))}, "create web-1 of new", ""},
		"a gap first":                              {web(3), 0, []state{ready, nil, ready}, "create web-1 of new", ""},
		"one that failed is replaced":              {web(3), 0, []state{ready, failed, ready}, "restart web-1", codeOrder},
		"one that succeeded is replaced":           {web(3), 0, []state{succeeded}, "restart web-0", codeOrder},
		"one that failed and terminates is waited": {web(3), 0, []state{func(p *corev1.Pod) { failed(p); leaving(p) }}, "", codeOrder},
		"from a start":                             {web(2, startAt(5)), 5, []state{ready}, "create web-6 of new", ""},
		"those below the start go":                 {web(2, startAt(2)), 0, []state{ready, ready, ready, ready}, "delete web-1", ""},
		"a new start":                              {web(2, startAt(1)), 0, []state{ready}, "create web-1 of new", ""},
		"the last goes first":                      {web(1), 0, []state{ready, ready, ready}, "delete web-2", ""},
		"none goes while one terminates":           {web(1), 0, []state{ready, ready, func(p *corev1.Pod) { ready(p); leaving(p) }}, "", codeOrder},
		"none goes while a wanted one is not ready": {
			web(1), 0, []state{unready, ready, ready}, "", codeOrder,
		},
		"the only broken one goes":          {web(1), 0, []state{ready, ready, unready}, "delete web-2", ""},
		"none goes while two are broken":    {web(1), 0, []state{ready, unready, unready}, "", codeOrder},
		"one that was never ready may go":   {web(1), 0, []state{ready, unready, pulls}, "delete web-2", ""},
		"no Pods":                           {web(0), 0, []state{ready, ready}, "delete web-1", ""},
		"all there":                         {web(2), 0, []state{ready, ready}, "", ""},
		"all at once with Parallel":         {web(3, parallel), 0, []state{nil, unready}, "create web-0 of new, create web-2 of new", ""},
		"failed ones with Parallel":         {web(3, parallel), 0, []state{failed, failed, ready}, "restart web-0, restart web-1", codeOrder + " " + codeOrder},
		"all go at once with Parallel":      {web(1, parallel), 0, []state{unready, pending, ready, leaving}, "delete web-2, delete web-1", ""},
		"a missing label":                   {web(1), 0, []state{func(p *corev1.Pod) { ready(p); delete(p.Labels, appsv1.StatefulSetPodNameLabel) }}, "relabel web-0", ""},
		"a missing label of one that goes":  {web(1), 0, []state{func(p *corev1.Pod) { ready(p); leaving(p); p.Labels = nil }}, "", codeOrder},
		"a size that nobody can have means": {web(2_000_000_000), 0, []state{ready, ready}, "create web-2 of new", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkPlan(t, seen(test.set, some(test.set, test.from, test.pods...)), test.want)
			if got := codes(p); got != test.reason {
				t.Errorf("the reasons are %q, want %q", got, test.reason)
			}
		})
	}
}

func TestARunCreatesABoundedNumberOfPods(t *testing.T) {
	set := web(2_000_000_000, parallel)
	if p := decide(seen(set, some(set, 0, ready))); len(p.create) != createsAtOnce || p.create[0].Name != "web-1" {
		t.Errorf("it creates %d Pods", len(p.create))
	}
}

func TestARolloutGoesFromTheHighestOrdinalDown(t *testing.T) {
	for name, test := range map[string]struct {
		set  *appsv1.StatefulSet
		pods []state
		want string
		why  string
	}{
		"the last first":                        {web(3), []state{old(ready), old(ready), old(ready)}, "delete web-2", codeUnavailable},
		"then the one below":                    {web(3), []state{old(ready), old(ready), ready}, "delete web-1", codeUnavailable},
		"not while one is not ready":            {web(3), []state{old(ready), old(ready), starting}, "", codeOrder},
		"a size before":                         {web(2), []state{old(ready), old(ready), old(ready)}, "delete web-2", ""},
		"down to the partition":                 {web(3, partition(2)), []state{old(ready), old(ready), ready}, "", codePartition},
		"the partition counts from the start":   {web(3, partition(2)), []state{old(ready), old(ready), old(ready)}, "delete web-2", codePartition},
		"a partition beyond the last":           {web(2, partition(9)), []state{old(ready), old(ready)}, "", codePartition},
		"several at once":                       {web(4, maxUnavailable("2")), []state{old(ready), old(ready), old(ready), old(ready)}, "delete web-3, delete web-2", codeUnavailable},
		"a percentage rounds down":              {web(5, maxUnavailable("50%")), []state{old(ready), old(ready), old(ready), old(ready), old(ready)}, "delete web-4, delete web-3", codeUnavailable},
		"and is one at least":                   {web(2, maxUnavailable("10%")), []state{old(ready), old(ready)}, "delete web-1", codeUnavailable},
		"without fields, one":                   {web(2, plainRolling(2)), []state{old(ready), old(ready)}, "delete web-1", codeUnavailable},
		"none with OnDelete":                    {web(2, onDelete), []state{old(ready), old(ready)}, "", codeOnDelete},
		"Parallel: broken old ones cost none":   {web(4, parallel), []state{old(unready), old(pulls), old(ready), ready}, "delete web-1, delete web-0", codeUnavailable},
		"Parallel: broken new ones count":       {web(4, parallel), []state{old(ready), old(ready), old(ready), unready}, "", codeUnavailable},
		"Parallel: within the budget":           {web(4, parallel, maxUnavailable("2")), []state{old(ready), old(ready), old(ready), unready}, "delete web-2", codeUnavailable},
		"Parallel: missing ones count":          {web(3, parallel), []state{old(ready), old(ready)}, "create web-2 of new", codeUnavailable},
		"Parallel: not below the partition":     {web(2, parallel, partition(1)), []state{old(unready), ready}, "", codePartition},
		"Parallel: one that ended goes once":    {web(2, parallel), []state{ready, old(failed)}, "restart web-1", codeOrder},
		"Parallel: one that terminates is left": {web(2, parallel), []state{old(ready), old(leaving)}, "", codeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkPlan(t, seen(test.set, some(test.set, 0, test.pods...)), test.want)
			if got := codes(p); !strings.Contains(got, test.why) {
				t.Errorf("the reasons are %q, want %q", got, test.why)
			}
		})
	}
}

// The API server accepts such a percentage, and it fits into no integer.
func TestALimitThatCannotBeReadIsNamed(t *testing.T) {
	set := web(2, maxUnavailable("99999999999%"))
	p := checkPlan(t, seen(set, some(set, 0, old(ready), old(ready))), "")
	if p.failure == nil || !strings.Contains(p.failure.Error(), "spec.updateStrategy.rollingUpdate.maxUnavailable") {
		t.Errorf("the failure is %v", p.failure)
	}
}

func TestWithoutMaxUnavailableOnePodIsReplacedAtATime(t *testing.T) {
	for name, test := range map[string]struct {
		pods []state
		want string
	}{
		"the last first":             {[]state{old(ready), old(unready), old(ready)}, "delete web-2"},
		"not while one is not ready": {[]state{old(ready), old(ready), unready}, ""},
		"nor while one is missing":   {[]state{old(ready), old(ready), ready, nil}, "create web-3 of new"},
		"whatever is broken below":   {[]state{old(unready), old(ready), ready}, "delete web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			set := web(int32(len(test.pods)), parallel, maxUnavailable("3"))
			v := seen(set, some(set, 0, test.pods...))
			v.options.IgnoreMaxUnavailable = true
			checkPlan(t, v, test.want)
		})
	}
}

func TestAPodComesBackAtTheRevisionThatTheRolloutHasReached(t *testing.T) {
	for name, test := range map[string]struct {
		set  *appsv1.StatefulSet
		want string
	}{
		"at the partition":               {web(1, partition(0)), "create web-0 of new"},
		"below the partition":            {web(1, partition(1)), "create web-0 of old"},
		"below a partition from a start": {web(1, partition(1), startAt(3)), "create web-3 of old"},
		"without fields, not reached":    {web(1, plainRolling(1)), "create web-0 of old"},
		"without fields, reached":        {web(1, plainRolling(0)), "create web-0 of new"},
		"OnDelete":                       {web(1, onDelete), "create web-0 of new"},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkPlan(t, seen(test.set, nil), test.want)
			image := map[bool]string{true: "web:1", false: "web:2"}[revisionOf(p.create[0]) == oldRevision]
			if got := p.create[0].Spec.Containers[0].Image; got != image {
				t.Errorf("the image is %s, want %s", got, image)
			}
		})
	}
}

func TestAPodThatWasNeverReadyDoesNotHoldUpARollout(t *testing.T) {
	long := startingSince(midday.Add(-firstStart))
	initializing := func(p *corev1.Pod) {
		starting(p)
		p.Status.Phase = corev1.PodPending
		p.Status.InitContainerStatuses = p.Status.ContainerStatuses
		p.Status.ContainerStatuses = nil
	}
	for name, test := range map[string]struct {
		set  *appsv1.StatefulSet
		pods []state
		want string
		why  string
	}{
		"without a node":                    {web(3), []state{ready, ready, old(pending)}, "delete web-2", ""},
		"without its image":                 {web(3), []state{ready, ready, old(pulls)}, "delete web-2", ""},
		"its container fails":               {web(3), []state{ready, ready, old(crashes)}, "delete web-2", ""},
		"it runs for long":                  {web(3), []state{ready, ready, old(long)}, "delete web-2", ""},
		"the first of all":                  {web(3), []state{old(pulls)}, "delete web-0", ""},
		"not one that was ready":            {web(3), []state{ready, ready, old(unready)}, "", codeOrder},
		"not while it starts":               {web(3), []state{ready, ready, old(starting)}, "", codeFirstStart},
		"not while it runs after a failure": {web(3), []state{ready, ready, old(runsAgain)}, "", codeFirstStart},
		"nor while its init container runs": {web(3), []state{ready, ready, old(initializing)}, "", codeFirstStart},
		"not one of the new revision":       {web(3), []state{ready, ready, pulls}, "", codeOrder},
		"not one below the partition":       {web(3, partition(3)), []state{ready, ready, old(pulls)}, "", codeOrder},
		"not with OnDelete":                 {web(3, onDelete), []state{ready, ready, old(pulls)}, "", codeOrder},
		"not while a member is missing":     {web(3), []state{ready, old(pulls), old(unready)}, "", codeOrder},
		"nor while a member terminates":     {web(3), []state{ready, old(pulls), func(p *corev1.Pod) { unready(p); leaving(p) }}, "", codeOrder},
		"though others were never ready":    {web(3), []state{ready, old(pulls), old(pulls)}, "delete web-1", ""},
		"not while one above it is gone":    {web(3), []state{old(crashes), nil, ready}, "", codeOrder},
		"nor while several are":             {web(4), []state{old(pulls), nil, nil, old(pulls)}, "", codeOrder},
		"nor one that is not the next":      {web(4), []state{ready, old(crashes), nil, ready}, "", codeOrder},
		"though the last one is gone":       {web(3), []state{old(crashes), ready, nil}, "delete web-0", ""},
		"though none is above it":           {web(3), []state{ready, old(crashes), nil}, "delete web-1", ""},
		"though there is none before start": {web(2, startAt(1)), []state{nil, old(crashes), ready}, "delete web-1", ""},
		"not with a gap after the start":    {web(3, startAt(1)), []state{nil, old(crashes), nil, ready}, "", codeOrder},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkPlan(t, seen(test.set, some(test.set, 0, test.pods...)), test.want)
			if got := codes(p); got != test.why {
				t.Errorf("the reasons are %q, want %q", got, test.why)
			}
			if test.why == codeFirstStart && p.after != firstStart-time.Minute {
				t.Errorf("it looks again after %s", p.after)
			}
		})
	}
}

// Under OrderedReady a Pod is created when all below it are ready, so web-2 shows that web-1 was.
func TestARolloutThatWaitsForAMemberWithoutAPodNamesIt(t *testing.T) {
	set := web(3)
	p := decide(seen(set, some(set, 0, old(crashes), nil, ready)))
	want := "the next step waits for Pod web-0, which has never been ready and is not replaced, because Pod web-1 was ready and does not exist " +
		"(podManagementPolicy OrderedReady); to go on, delete Pod web-0"
	if len(p.reasons) != 1 || p.reasons[0].Sentence() != want || p.reasons[0].Until.Name != "web-0" {
		t.Errorf("the reasons are %v, want %q", p.reasons, want)
	}
}

func TestTheStrategyRecreateDeletesAllOldPodsFirst(t *testing.T) {
	for name, test := range map[string]struct {
		pods      []state
		want      string
		condition string
	}{
		"all at once":          {[]state{old(ready), old(ready), ready}, "delete web-0, delete web-1", "True Deleting old revision pods"},
		"then it waits":        {[]state{old(leaving), nil, nil}, "", "True Deleting old revision pods"},
		"then it creates them": {[]state{ready, nil, nil}, "create web-1 of new", "True Waiting for new-revision pods to be created"},
	} {
		t.Run(name, func(t *testing.T) {
			set := web(3, recreate)
			v := seen(set, some(set, 0, test.pods...))
			v.options.Recreate = true
			p := checkPlan(t, v, test.want)
			if len(p.status.Conditions) != 1 || string(p.status.Conditions[0].Status)+" "+p.status.Conditions[0].Message != test.condition ||
				p.status.Conditions[0].Reason != recreateInProgress {
				t.Errorf("the conditions are %v", p.status.Conditions)
			}
		})
	}
}

func TestTheStrategyRecreateIsRefusedWithoutItsGate(t *testing.T) {
	set := web(1, recreate)
	p := checkPlan(t, seen(set, nil), "")
	want := "statefulset shop/web uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled"
	if p.failure == nil || p.failure.Error() != want || len(p.events) != 1 || p.events[0] != (events.Planned{Warning: true, Reason: unknownStrategy, Action: deciding, Note: want}) {
		t.Errorf("the failure is %v, the Events %v", p.failure, p.events)
	}
}

func TestClaimsFollowTheirPodsAndTheRetentionPolicy(t *testing.T) {
	kept, goes := withClaims(retain, retain), withClaims(remove, remove)
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web-0", UID: "earlier", Controller: new(true)}
	stranger := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Backup", Name: "nightly", UID: "backup", Controller: new(true)}
	ending := func(set *appsv1.StatefulSet) *corev1.PersistentVolumeClaim {
		c := claimOf(set, 0)
		c.DeletionTimestamp = new(metav1.NewTime(midday))
		return c
	}
	for name, test := range map[string]struct {
		set    *appsv1.StatefulSet
		pods   []state
		claims func(*appsv1.StatefulSet) []*corev1.PersistentVolumeClaim
		want   string
		why    string
	}{
		"a missing one of a Pending Pod": {web(1, kept), []state{pending}, nil, "create data-web-0", codeOrder},
		"not of a Pod that runs":         {web(1, kept), []state{ready}, nil, "", ""},
		"one that goes blocks a Pod": {web(1, kept), nil, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{ending(s)}
		}, "", codeClaimGoes},
		"and keeps a Pending Pod waiting": {web(1, kept), []state{pending}, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{ending(s)}
		}, "", codeClaimGoes},
		"one of an earlier Pod blocks": {web(1, goes), nil, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{claimOf(s, 0, other)}
		}, "", codeClaimStale},
		"not if claims are kept": {web(1, kept), nil, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{claimOf(s, 0, other)}
		}, "create web-0 of new", ""},
		"the StatefulSet becomes the owner": {web(1, goes), []state{ready}, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{claimOf(s, 0)}
		}, "owners of data-web-0: web", ""},
		"a Pod that goes becomes the owner": {web(0, goes), []state{ready}, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{claimOf(s, 0, bySet(s))}
		}, "owners of data-web-0: web-0, delete web-0", ""},
		"a policy that was changed": {web(1, kept), []state{ready}, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{claimOf(s, 0, bySet(s))}
		}, "owners of data-web-0:", ""},
		"another controller": {web(1, goes), []state{ready}, func(s *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
			return []*corev1.PersistentVolumeClaim{claimOf(s, 0, stranger, bySet(s))}
		}, "owners of data-web-0: nightly", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var claims []*corev1.PersistentVolumeClaim
			if test.claims != nil {
				claims = test.claims(test.set)
			}
			p := checkPlan(t, seen(test.set, some(test.set, 0, test.pods...), claims...), test.want)
			if got := codes(p); got != test.why {
				t.Errorf("the reasons are %q, want %q", got, test.why)
			}
		})
	}
}

func TestAPodThatIsInTheWayIsNamedAndNotTouched(t *testing.T) {
	set := web(2)
	stranger := pod(set, 1, "")
	stranger.OwnerReferences = nil
	v := seen(set, some(set, 0, ready))
	v.foreign = func(name string) *corev1.Pod {
		if name == stranger.Name {
			return stranger
		}
		return nil
	}
	p := checkPlan(t, v, "")
	if codes(p) != codeNameTaken || len(p.events) != 1 || p.events[0].Reason != failedCreate {
		t.Errorf("reasons %v, Events %v", p.reasons, p.events)
	}
	leaving(stranger) // of an earlier StatefulSet, say
	if p := checkPlan(t, v, ""); codes(p) != codeNameTaken || len(p.events) != 0 {
		t.Errorf("reasons %v, Events %v", p.reasons, p.events)
	}
}

func TestAPodWithOtherVolumesIsNamed(t *testing.T) {
	set := web(1, withClaims(retain, retain))
	p := checkPlan(t, seen(set, some(set, 0, func(p *corev1.Pod) { ready(p); p.Spec.Volumes = nil })), "")
	if codes(p) != codeVolumes || len(p.events) != 1 || p.events[0].Reason != failedUpdate ||
		!strings.Contains(p.events[0].Note, "Update Pod web-0 in StatefulSet web failed error: ") {
		t.Errorf("reasons %v, Events %v", p.reasons, p.events)
	}
}

func TestTheNextLookIsWhenAPodBecomesAvailable(t *testing.T) {
	set := web(3, minReady(30), parallel)
	p := decide(seen(set, some(set, 0, ready, readySince(midday.Add(-10*time.Second)), readySince(midday.Add(-20*time.Second)))))
	if p.after != 10*time.Second {
		t.Errorf("it looks again after %s", p.after)
	}
}
