// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storageversionmigrator writes the objects of a kind again, so that the server stores
// them in the present storage version and with the present encryption key.
//
// A user creates a StorageVersionMigration that names a resource. The controller sends a patch
// that changes nothing to each object of the resource: the server decodes the object, encodes it
// as it stores objects now, and writes it if the bytes differ.
//
// # What it watches and writes
//
// It watches StorageVersionMigrations. Its keys are the resources that they name, and not the
// migrations: one resource has one migration at a time, the oldest one, and the others wait. It
// writes the status of migrations, patches the objects, and, for a custom resource, writes the
// condition StorageMigrating and the field storedVersions in the status of its
// CustomResourceDefinition.
//
// # The steps of a migration
//
// Each step is derived from what the server has, so a controller that is killed between two of
// them goes on with the next one:
//
//  1. The definition of a custom resource gets the condition StorageMigrating, and the migration
//     the condition Running.
//  2. status.resourceVersion becomes the version that the resource has now. Objects that were
//     written after it are stored in the right form already.
//  3. The metadata of all objects is listed. Each object that is not newer than that version gets
//     its patch, which names the resourceVersion. A conflict means that another client has
//     written the object, so nothing is left to do; so does an object that is gone. A run patches
//     some hundred objects, and then lets other resources have the worker.
//  4. The migration gets the condition Succeeded. If the server refuses a patch for good, the
//     condition is Failed, and its message has the object and the reason.
//  5. storedVersions becomes the storage version alone, if the definition has not changed since
//     step 1. StorageMigrating and Running become False.
//
// Errors that pass, such as an overloaded server or a webhook that does not answer, are in the
// message of the condition Running, and the patches are tried again with pauses. Patches that were
// sent before are sent again after a restart: the server finds nothing to write then.
//
// A resource that the server does not serve is looked for during the first minute of the
// migration, since a definition may just have been created. After that the migration fails.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/storageversionmigrator). It differs on purpose in this:
//
//   - It lists the objects from the server, in pages, for the migration alone. Upstream reads the
//     cache of the garbage collector, waits for it, and does not run without it.
//   - storedVersions changes only after a migration that has succeeded. Upstream's changes after
//     one that has failed, too, although objects may still be stored in an older version.
//   - Four objects are patched at a time, and the message of Running says how many are left while
//     the migration runs. The message of a failure names the object.
//   - If a running migration is deleted, the condition StorageMigrating of the definition becomes
//     False. Upstream's stays True.
package storageversionmigrator
