// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestNamesThatOnlyLookLikeThoseOfMembers(t *testing.T) {
	for name, want := range map[string]string{
		"web-0": "web 0", "web-1-0": "web-1 0", "web-2147483647": "web 2147483647",
		"web-01": "", "web-+1": "", "web--1": "web- 1", "web-1a": "", "web-": "", "-1": "", "web": "", "7": "",
		"web-2147483648": "", "web-99999999999999999999": "", "web-0x1": "", "web-1_0": "", "web-٣": "",
	} {
		got := ""
		if set, ordinal, ok := splitName(name); ok {
			got = fmt.Sprint(set, " ", ordinal)
		}
		if got != want {
			t.Errorf("%s is that of %q, want %q", name, got, want)
		}
	}
}

func TestOrdinalsEndAtTheLargestOneAndThatIsSaid(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(3, parallel, startAt(math.MaxInt32-1)))
		c.settle()
		c.want("at rest", "web-2147483646 web:2, web-2147483647 web:2")
		c.Forget()
		time.Sleep(time.Hour)
		c.settle()
		if calls := c.pods.Calls(); len(calls) != 0 {
			t.Errorf("requests in an hour: %q", calls)
		}
		const want = "Create Pod web-2147483648 in StatefulSet web failed error: the largest ordinal is 2147483647; make spec.ordinals.start or spec.replicas smaller, by 1 together"
		if notes := c.notes(failedCreate); !slices.Equal(notes, []string{want}) {
			t.Errorf("the Events say %q", notes)
		}
		if got := c.process.Reasons("shop/web"); !slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, codeBeyond) }) {
			t.Errorf("the reasons are %q", got)
		}
		c.change(replicas(2))
		c.change(image("web:3"))
		c.settle()
		c.want("with a size that fits", "web-2147483646 web:3, web-2147483647 web:3")
	})
}

func TestOfClaimTemplatesWithOneNameTheLastOneCounts(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(1, withClaims(retain, remove), func(set *appsv1.StatefulSet) {
			last := set.Spec.VolumeClaimTemplates[0].DeepCopy()
			last.Labels = map[string]string{"tier": "last"}
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, *last)
		}))
		c.settle()
		c.want("at rest", "web-0 web:2")
		if volumes := c.all()[0].Spec.Volumes; len(volumes) != 1 || volumes[0].PersistentVolumeClaim.ClaimName != "data-web-0" {
			t.Errorf("the Pod has the volumes %+v", volumes)
		}
		claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, object.Key{Namespace: "shop", Name: "data-web-0"})
		if err != nil || claim.Labels["tier"] != "last" {
			t.Errorf("the claim is %v (%v)", claim, err)
		}
		if calls := c.claims.Calls(); len(calls) != 1 {
			t.Errorf("the requests about claims are %q", calls)
		}
	})
}

func TestStatefulSetsWithOneSelectorKeepTheirOwnPodsAndClaims(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.pods.Before(nil) // which knows one StatefulSet
		// All three select all Pods, and the names of the last two are names of members, with an ordinal.
		names := []string{"web", "web-0", "web-1-0"}
		for _, name := range names {
			set := web(2, withClaims(remove, remove))
			set.Name = name
			c.create(set)
		}
		c.settle()
		c.want("at rest", "web-0 web:2, web-0-0 web:2, web-0-1 web:2, web-1 web:2, web-1-0-0 web:2, web-1-0-1 web:2")
		for _, pod := range c.all() {
			set, _, _ := splitName(pod.Name)
			if owner := metav1.GetControllerOf(pod); owner == nil || owner.Name != set {
				t.Errorf("Pod %s belongs to %v", pod.Name, owner)
			}
		}
		c.Forget()
		c.Forget()
		time.Sleep(time.Hour)
		c.settle()
		if calls := append(c.pods.Calls(), c.claims.Calls()...); len(calls) != 0 {
			t.Errorf("requests in an hour: %q", calls)
		}
		for _, name := range names {
			set, err := fakeapi.Read[*appsv1.StatefulSet](c.sets, object.Key{Namespace: "shop", Name: name})
			if err != nil || set.Status.AvailableReplicas != 2 || set.Status.Replicas != 2 {
				t.Errorf("%s has the status %+v (%v)", name, set.Status, err)
			}
		}
	})
}

func TestAPodThatTheServerRefusesDelaysNoOtherStatefulSetAndItsEventSaysWhatToDo(t *testing.T) {
	bubble(t, func(c *cluster) {
		const long = "a-name-of-sixty-three-characters-which-the-server-accepts-as-it"
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" && bytes.Contains(managertest.Body(t, q), []byte(long)) {
				s := refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
				s.Message = "metadata.labels: Invalid value: must be no more than 63 bytes"
				return s
			}
			return nil
		})
		set := web(1)
		set.Name = long
		c.create(set)
		c.create(web(1))
		c.settle()
		c.want("meanwhile", "web-0 web:2")
		notes := c.notes(failedCreate)
		if len(notes) != 1 || !strings.Contains(notes[0], "the name of the StatefulSet is too long for the labels of its Pods: create it with a name of 52 characters at most") {
			t.Errorf("the Events say %q", notes)
		}
		c.Forget()
		managertest.Pass(time.Hour)
		if n := len(c.pods.Calls()); n > 12 {
			t.Errorf("%d requests in an hour", n)
		}
	})
}

func TestANegativeLimitOfTheHistoryKeepsAllRevisions(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(1, func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(-1)) }))
		for _, name := range []string{"web:3", "web:4", "web:5"} {
			c.settle()
			c.change(image(name))
		}
		c.settle()
		c.want("at rest", "web-0 web:5")
		all, _, err := client.For[*appsv1.ControllerRevision](c.Client).List(c.t.Context(), client.Selection{})
		if err != nil || len(all) != 4 {
			t.Errorf("there are %d revisions (%v), want 4", len(all), err)
		}
	})
}
