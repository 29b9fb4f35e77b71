// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finalizer adds and removes finalizers. A finalizer keeps a deleted object in the
// cluster until a controller has cleaned up what belongs to it outside of the cluster.
//
// A reconciler of such a kind begins with these lines:
//
//	if o.DeletionTimestamp != nil {
//	    if err := cleanUp(o); err != nil {
//	        return controller.Result{}, err
//	    }
//	    return controller.Result{}, finalizer.Remove(ctx, informer, o, "example.com/cleanup")
//	}
//	if o, err = finalizer.Add(ctx, informer, o, "example.com/cleanup"); err != nil {
//	    return controller.Result{}, err
//	}
package finalizer
