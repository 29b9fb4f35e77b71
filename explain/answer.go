// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the first sentence. They stay the same from version to version.
const (
	CodeGone      = "Gone"            // the object does not exist
	CodeDeleting  = "BeingDeleted"    // it is being deleted, and waits
	CodeWaits     = "Waits"           // a controller has stated what it waits for
	CodeTrouble   = "Trouble"         // its own state says that something is wrong
	CodeBelow     = "TroubleBelow"    // something that it owns is in trouble
	CodeFails     = "RunsFail"        // a controller fails to reconcile it
	CodeFight     = "Fight"           // two writers take turns on a field
	CodeHotLoop   = "HotLoop"         // a controller runs again and again without effect
	CodeOwnWrite  = "OwnWriteNotSeen" // a controller waits until its informers have seen what it wrote
	CodeLags      = "CacheLags"       // an informer of a controller is not current
	CodeAllIsWell = "AllIsWell"       // nothing is known to be wrong
	CodeNotMuch   = "NotMuchKnown"    // no record, and the state says nothing
)

// Answer says why an object is as it is. Its JSON form is stable: fields are added and never change their meaning.
type Answer struct {
	Object   runs.Object `json:"object"`
	AsOf     time.Time   `json:"asOf"`
	Code     string      `json:"code"`
	Sentence string      `json:"sentence"`
	// Since is when that began, if it is known.
	Since *time.Time `json:"since,omitempty"`

	Chain     []Step       `json:"chain,omitempty"`     // from the first cause to the newest write
	NotDone   []NotDone    `json:"notDone,omitempty"`   // what controllers did not do, and why
	Parts     []Trouble    `json:"parts,omitempty"`     // objects below that are in trouble
	MoreParts int          `json:"moreParts,omitempty"` // objects below that are in trouble, beyond those of Parts
	Fights    []Fight      `json:"fights,omitempty"`
	Loops     []Loop       `json:"loops,omitempty"`  // the last run of each controller for the object
	Fields    []FieldOwner `json:"fields,omitempty"` // the newest first
	Events    []Event      `json:"events,omitempty"` // the newest first
	Unknown   []string     `json:"unknown,omitempty"`

	lasting string // the sentence without what only counts on
}

// Agrees reports whether two answers that [Tell] made about one object say the same: the sentence, except for how
// long that lasts, and for how often a hot loop has run or a fight has gone on.
func (a *Answer) Agrees(b *Answer) bool { return a.Code == b.Code && a.lasting == b.lasting }

// Step is one step of the chain of causes.
type Step struct {
	At    time.Time `json:"at"`
	Depth int       `json:"depth"` // 0 is the first cause
	Actor string    `json:"actor"` // a controller, or the field manager of another program
	// Probably is set if the actor was found by the managedFields of the object, and not by a record.
	Probably bool   `json:"probably,omitempty"`
	Text     string `json:"text"`
	Run      uint64 `json:"run,omitempty"`   // its number in the record
	Times    int    `json:"times,omitempty"` // how often it was done in a row, if more than once
}

// NotDone is what a controller did not do or waits for.
type NotDone struct {
	Controller string      `json:"controller"`
	Key        string      `json:"key"`
	Object     runs.Object `json:"object"` // that the key stands for
	Reason     runs.Reason `json:"reason"`
	Text       string      `json:"text"`
	NextLook   *time.Time  `json:"nextLook,omitempty"`
	Since      time.Time   `json:"since"` // when it was stated first, of the times that it was stated in a row
}

// Trouble is an object below that is in trouble.
type Trouble struct {
	Object runs.Object `json:"object"`
	Depth  int         `json:"depth"`
	Texts  []string    `json:"texts"`
	Alike  int         `json:"alike,omitempty"` // how many other objects of the kind say the same
}

// Fight is a field that two writers change in turns.
type Fight struct {
	Field      string   `json:"field"`
	Controller string   `json:"controller"`
	Times      int      `json:"times"`
	Others     []string `json:"others,omitempty"` // the other writers: controllers, or field managers
	// Writes are the newest changes of the field that are known, the newest first.
	Writes []FightWrite `json:"writes,omitempty"`
}

// FightWrite is one change of a field about which writers fight.
type FightWrite struct {
	At    time.Time `json:"at"`
	Actor string    `json:"actor"` // a controller, or a field manager
}

// Loop is the state of a controller's loop for the object, or for one below it whose next run waits for an own write.
type Loop struct {
	Controller string `json:"controller"`
	// Object is the object of the key if it is another one than that of the answer.
	Object *runs.Object `json:"object,omitempty"`

	// The last run, by the record. Outcome is empty if the record has none.
	Outcome  string     `json:"outcome"`
	Error    string     `json:"error,omitempty"`
	Attempt  int        `json:"attempt,omitempty"`
	Last     time.Time  `json:"last"`
	NextLook *time.Time `json:"nextLook,omitempty"`
	Idle     int        `json:"idle,omitempty"`    // runs in a row that changed nothing
	Hot      bool       `json:"hot,omitempty"`     // they follow each other without a pause
	Repeats  string     `json:"repeats,omitempty"` // what each of them did in vain, if they wrote

	// State is what the loop does at present about the key; nil if its manager has not said so.
	State *runs.KeyState `json:"state,omitempty"`
}

// FieldOwner is a field manager and the fields that it owns.
type FieldOwner struct {
	Manager     string     `json:"manager"`
	Operation   string     `json:"operation"`
	Subresource string     `json:"subresource,omitempty"`
	At          *time.Time `json:"at,omitempty"`
	Fields      []string   `json:"fields"`
	More        int        `json:"more,omitempty"`
}
