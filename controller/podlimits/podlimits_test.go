// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podlimits_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// value reads a field as YAML would. An empty text is a field that is not set.
func value(text string) *intstr.IntOrString {
	if text == "" {
		return nil
	}
	v := intstr.Parse(text)
	return &v
}

func deployment(replicas int32, surge, unavailable string) *appsv1.Deployment {
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas, Strategy: appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: value(surge), MaxUnavailable: value(unavailable)},
	}}}
}

func daemonSet(surge, unavailable string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: value(surge), MaxUnavailable: value(unavailable)},
	}}}
}

func statefulSet(replicas int32, unavailable string, partition *int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: value(unavailable), Partition: partition},
	}}}
}

func budget(unavailable, available string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value(unavailable), MinAvailable: value(available)}}
}

func TestTheSurgeOfADeploymentRoundsUpAndWhatIsUnavailableDown(t *testing.T) {
	for _, c := range []struct {
		name               string
		desired            int32
		surge, unavailable string
		want               podlimits.Limits
	}{
		{"quarters of 20", 20, "25%", "25%", podlimits.Limits{Desired: 20, Surge: 5, Unavailable: 5}},
		{"quarters of 10", 10, "25%", "25%", podlimits.Limits{Desired: 10, Surge: 3, Unavailable: 2}},
		{"quarters of 1", 1, "25%", "25%", podlimits.Limits{Desired: 1, Surge: 1}},
		{"both 0 after rounding", 2, "0%", "1%", podlimits.Limits{Desired: 2, Unavailable: 1}},
		{"numbers", 10, "3", "4", podlimits.Limits{Desired: 10, Surge: 3, Unavailable: 4}},
		{"fields that are not set", 10, "", "", podlimits.Limits{Desired: 10, Unavailable: 1}},
		{"more unavailable than there are", 2, "0", "5", podlimits.Limits{Desired: 2, Unavailable: 2}},
		{"nothing wanted", 0, "25%", "25%", podlimits.Limits{}},
		{"the largest number", math.MaxInt32, "1", "0", podlimits.Limits{Desired: math.MaxInt32, Surge: 1}},
		{"a percentage that does not fit", math.MaxInt32, "2147483647%", "0", podlimits.Limits{Desired: math.MaxInt32, Surge: math.MaxInt32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := podlimits.Deployment(deployment(c.desired, c.surge, c.unavailable))
			if err != nil || got != c.want {
				t.Errorf("limits = %+v, %v, want %+v", got, err, c.want)
			}
			if got.Most() < got.Desired || got.Least() > got.Desired {
				t.Errorf("%d to %d Pods", got.Least(), got.Most())
			}
		})
	}
}

func TestBothFieldsOfADaemonSetRoundUp(t *testing.T) {
	for _, c := range []struct {
		name               string
		nodes              int32
		surge, unavailable string
		want               podlimits.Limits
	}{
		{"a tenth of 11 unavailable", 11, "0", "10%", podlimits.Limits{Desired: 11, Unavailable: 2}},
		{"a tenth of 11 as surge", 11, "10%", "0", podlimits.Limits{Desired: 11, Surge: 2}},
		{"neither", 11, "0", "0", podlimits.Limits{Desired: 11, Unavailable: 1}},
		{"neither, without nodes", 0, "0", "0", podlimits.Limits{}},
		{"more than there are nodes", 2, "0", "5", podlimits.Limits{Desired: 2, Unavailable: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := podlimits.DaemonSet(daemonSet(c.surge, c.unavailable), c.nodes); err != nil || got != c.want {
				t.Errorf("limits = %+v, %v, want %+v", got, err, c.want)
			} else if got.Least() < 0 {
				t.Errorf("at least %d Pods", got.Least())
			}
		})
	}
}

func TestOnePodOfAStatefulSetIsReplacedAtATimeByDefault(t *testing.T) {
	for _, c := range []struct {
		name        string
		unavailable string
		partition   *int32
		want        podlimits.Limits
	}{
		{"not set", "", nil, podlimits.Limits{Desired: 10, Unavailable: 1}},
		{"less than one", "9%", nil, podlimits.Limits{Desired: 10, Unavailable: 1}},
		{"rounded down", "39%", nil, podlimits.Limits{Desired: 10, Unavailable: 3}},
		{"a partition", "3", new(int32(4)), podlimits.Limits{Desired: 10, Unavailable: 3, Partition: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := podlimits.StatefulSet(statefulSet(10, c.unavailable, c.partition)); err != nil || got != c.want {
				t.Errorf("limits = %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestAStrategyWithoutRollingUpdateHasNoLimits(t *testing.T) {
	d := deployment(4, "1", "1")
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	if got, err := podlimits.Deployment(d); err != nil || got != (podlimits.Limits{Desired: 4}) {
		t.Errorf("a Deployment has %+v, %v", got, err)
	}
	daemon := daemonSet("1", "0")
	daemon.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	if got, err := podlimits.DaemonSet(daemon, 4); err != nil || got != (podlimits.Limits{Desired: 4}) {
		t.Errorf("a DaemonSet has %+v, %v", got, err)
	}
	set := statefulSet(4, "2", new(int32(3)))
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	if got, err := podlimits.StatefulSet(set); err != nil || got != (podlimits.Limits{Desired: 4, Partition: 3}) {
		t.Errorf("a StatefulSet has %+v, %v", got, err)
	}
}

func TestABudgetRoundsInFavourOfItsField(t *testing.T) {
	for _, c := range []struct {
		name                   string
		unavailable, available string
		total, healthy         int32
		want                   podlimits.Budget
		allowed                int32
	}{
		{"a third unavailable", "33%", "", 10, 10, podlimits.Budget{Expected: 10, Healthy: 6}, 4},
		{"a third available", "", "33%", 10, 10, podlimits.Budget{Expected: 10, Healthy: 4}, 6},
		{"a number unavailable", "3", "", 10, 9, podlimits.Budget{Expected: 10, Healthy: 7}, 2},
		{"a number available", "", "3", 2, 2, podlimits.Budget{Expected: 2, Healthy: 3}, 0},
		{"more unavailable than there are", "30", "", 10, 1, podlimits.Budget{Expected: 10}, 1},
		{"none expected", "", "0", 0, 1, podlimits.Budget{}, 0},
		{"neither field", "", "", 10, 10, podlimits.Budget{}, 0},
		{"both fields", "1", "1", 10, 10, podlimits.Budget{Expected: 10, Healthy: 9}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := podlimits.PodDisruptionBudget(budget(c.unavailable, c.available), c.total)
			if err != nil || got != c.want || got.Allowed(c.healthy) != c.allowed {
				t.Errorf("budget = %+v, %v, allows %d; want %+v and %d", got, err, got.Allowed(c.healthy), c.want, c.allowed)
			}
		})
	}
	for want, pdb := range map[bool][]*policyv1.PodDisruptionBudget{
		true:  {budget("1", ""), budget("1%", ""), budget("", "1%")},
		false: {budget("", "1"), budget("", "")},
	} {
		for _, b := range pdb {
			if podlimits.NeedsScale(b) != want {
				t.Errorf("a budget with %v and %v needs scales: %t", b.Spec.MaxUnavailable, b.Spec.MinAvailable, !want)
			}
		}
	}
}

func TestAnErrorNamesTheFieldAndWhatToWrite(t *testing.T) {
	for _, bad := range []string{"-1", "half", "1.5%", "+5%", "-5%", " 5%", "%", "5%%", "99999999999999999999%", "2147483648%"} {
		for field, of := range map[string]func() error{
			"spec.strategy.rollingUpdate.maxSurge": func() error {
				_, err := podlimits.Deployment(deployment(4, bad, "1"))
				return err
			},
			"spec.strategy.rollingUpdate.maxUnavailable": func() error {
				_, err := podlimits.Deployment(deployment(4, "1", bad))
				return err
			},
			"spec.updateStrategy.rollingUpdate.maxSurge": func() error {
				_, err := podlimits.DaemonSet(daemonSet(bad, "1"), 4)
				return err
			},
			"spec.updateStrategy.rollingUpdate.maxUnavailable": func() error {
				_, err := podlimits.StatefulSet(statefulSet(4, bad, nil))
				return err
			},
			"spec.maxUnavailable": func() error {
				_, err := podlimits.PodDisruptionBudget(budget(bad, ""), 4)
				return err
			},
			"spec.minAvailable": func() error {
				_, err := podlimits.PodDisruptionBudget(budget("", bad), 4)
				return err
			},
		} {
			want := fmt.Sprintf(`%s is %q; write a number of Pods, such as 1, or a percentage, such as "25%%"`, field, bad)
			if err := of(); err == nil || err.Error() != want {
				t.Errorf("%s %q: the error is %v, want %s", field, bad, err, want)
			}
		}
	}
	strange := intstr.IntOrString{Type: 7}
	pdb := budget("", "")
	pdb.Spec.MinAvailable = &strange
	if _, err := podlimits.PodDisruptionBudget(pdb, 4); err == nil || !strings.Contains(err.Error(), "spec.minAvailable") {
		t.Errorf("a value that is neither a number nor a text has the error %v", err)
	}
}
