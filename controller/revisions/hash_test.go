// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions_test

import (
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/revisions"
)

// TestTheHashOfATemplateIsThatOfKubeControllerManager compares with what ComputeHash of
// k8s.io/kubernetes/pkg/controller v1.37.2 says of the same templates. The values
// belong to that version of the API's types: a newer one may print templates
// differently, and then so does its kube-controller-manager.
func TestTheHashOfATemplateIsThatOfKubeControllerManager(t *testing.T) {
	data, err := os.ReadFile("testdata/hashes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name           string
		CollisionCount *int32
		Template       corev1.PodTemplateSpec
		Hash           string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if got := revisions.HashTemplate(&c.Template, c.CollisionCount); got != c.Hash {
				t.Errorf("hash = %q, want %q", got, c.Hash)
			}
			// Templates reach a controller as protobuf.
			raw, err := c.Template.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			var again corev1.PodTemplateSpec
			if err := again.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			if got := revisions.HashTemplate(&again, c.CollisionCount); got != c.Hash {
				t.Errorf("hash of the template that came as protobuf = %q, want %q", got, c.Hash)
			}
		})
	}
}
