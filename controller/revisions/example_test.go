// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/revisions"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The first run for a StatefulSet creates a revision of its template.
func Example() {
	server := fakeapi.New().Serve(object.Resource{Group: "apps", Version: "v1", Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true})
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := cache.NewFactory(c, nil)
	informer := cache.Informer[*appsv1.ControllerRevision](factory)
	history := revisions.New(informer)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- factory.Run(ctx) }()
	fmt.Println(informer.WaitForSync(ctx))

	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db-uid"}}
	set.Spec.Template.Labels = map[string]string{"app": "db"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}

	owner := revisions.Owner{
		Object: set, Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Selector: labels.SelectorFromSet(set.Spec.Template.Labels),
		Live: func(context.Context) (object.Object, error) { return set, nil },
	}
	old, err := history.Claim(ctx, owner)
	fmt.Println(len(old), "revisions", err)
	state, err := revisions.StatefulSet(set)
	if err != nil {
		fmt.Println(err)
		return
	}
	now, err := history.Ensure(ctx, state, old, set.Status.CollisionCount)
	fmt.Println(now.Revision.Name, "has number", now.Revision.Revision, err)
	fmt.Println(string(now.Revision.Data.Raw))
	stop()
	fmt.Println(<-ended)
	// Output:
	// <nil>
	// 0 revisions <nil>
	// db-698d986d58 has number 1 <nil>
	// {"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"db"}},"spec":{"containers":[{"image":"db:1","name":"db","resources":{}}]}}}}
	// <nil>
}
