// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownfile opens files and directories that must belong to the user who runs this
// process.
//
// A directory that other users may write to can hold anything: a symbolic link or a second name
// of a file of this user, a pipe that blocks the process that opens it, keys that another user
// knows. The package checks before it uses, and it checks the open file rather than a name,
// which may mean another file a moment later. Errors wrap [ErrNotOwn].
//
// Root is trusted beside the user, because root may do everything anyway. Systems whose files
// have no owners are not protected.
package ownfile
