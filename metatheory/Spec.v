(** What clients may see: the traces of the specification.

    The specification of the procedures, verified/fs/spec/nfs3.s.dfy and once.s.dfy, is here a relation [allowed before call reply
    after]. This machine is what it means for many clients, and with crashes. It keeps the states that the volume went
    through since it was opened, the newest last, and how many of them a crash cannot take back. Every call takes effect at one
    instant between its coming and its reply, on the newest state. A crash takes the volume back to one of its states, though
    to none before those that are kept; so what it loses are the latest changes, and no reply has promised any of these.

    Between the calls the server may change the volume itself, as [shed] allows: it frees what no call needs. *)
From Tansy Require Export Tactics.

(** Calls have numbers, which only say what reply answers which call: one that comes again after a crash is a new call. *)
Inductive event {Op Res : Type} :=
  | Call (i : nat) (o : Op)      (* call i comes *)
  | Reply (i : nat) (r : Res)    (* its reply leaves *)
  | Failed (i : nat)             (* its status tells nothing (IO, ROFS, SERVERFAULT), or there is no reply *)
  | Crash.
Arguments event : clear implicits.

(** Where a call is: it has not come or is over; it has come; it has taken effect with reply r, which may leave when
    states 0 to b are kept. *)
Inductive status {Op Res : Type} := Idle | Waiting (o : Op) | Done (r : Res) (b : nat).
Arguments status : clear implicits.

Definition set {A} (f : nat → A) (i : nat) (a : A) : nat → A := λ j, if decide (j = i) then a else f j.
Lemma set_eq {A} f i (a : A) : set f i a i = a.
Proof. unfold set. by case_decide. Qed.
Lemma set_ne {A} f i j (a : A) : j ≠ i → set f i a j = f j.
Proof. unfold set. by case_decide. Qed.

Section spec.
  Context {V Op Res : Type}.
  Context (init : V → Prop) (allowed : V → Op → Res → V → Prop).
  Context (stable : Op → bool)   (* the reply says that the change is durable: all but WRITE with UNSTABLE *)
          (flush : Op → Res → bool)   (* so it says that everything before it is: COMMIT, if it succeeds *)
          (shed : V → V → Prop). (* what the server may change of itself *)

  Record machine := Machine { states : list V; kept : nat; calls : nat → status Op Res }.

  Inductive step : machine → list (event Op Res) → machine → Prop :=
    | comes vs k cs i o : cs i = Idle →
        step (Machine vs k cs) [Call i o] (Machine vs k (set cs i (Waiting o)))
    | changes vs k cs i o v r v' : cs i = Waiting o → last vs = Some v → allowed v o r v' →
        step (Machine vs k cs) [] (Machine (vs ++ [v']) k (set cs i (Done r (if stable o then length vs else 0))))
    | looks vs k cs i o v r : cs i = Waiting o → last vs = Some v → allowed v o r v →
        step (Machine vs k cs) [] (Machine vs k (set cs i (Done r (if flush o r then length vs - 1 else 0))))
    | sheds vs k cs v v' : last vs = Some v → shed v v' →
        step (Machine vs k cs) [] (Machine (vs ++ [v']) k cs)
    | keeps vs k cs k' : k ≤ k' < length vs →
        step (Machine vs k cs) [] (Machine vs k' cs)
    | replies vs k cs i r b : cs i = Done r b → b ≤ k →
        step (Machine vs k cs) [Reply i r] (Machine vs k (set cs i Idle))
    | fails vs k cs i : cs i ≠ Idle →
        step (Machine vs k cs) [Failed i] (Machine vs k (set cs i Idle))
    | crashes vs k cs n v : k ≤ n → vs !! n = Some v →
        step (Machine vs k cs) [Crash] (Machine [v] 0 (λ _, Idle)).

  (** [trace h m]: the machine can do [h], what clients see, and be [m] then. *)
  Inductive trace : list (event Op Res) → machine → Prop :=
    | starts v : init v → trace [] (Machine [v] 0 (λ _, Idle))
    | goes h m e m' : trace h m → step m e m' → trace (h ++ e) m'.

  (** What holds after a history H: if each event of it takes the machine from one set of states to the next, [A k] to
      [A (k + 1)], whatever the machine does in between. *)
  Lemma staged (H : list (event Op Res)) (A : nat → machine → Prop) :
    (∀ v, init v → A 0 (Machine [v] 0 (λ _, Idle))) →
    (∀ k m m', A k m → step m [] m' → A k m') →
    (∀ k e m m', H !! k = Some e → A k m → step m [e] m' → A (S k) m') →
    ∀ m, trace H m → A (length H) m.
  Proof.
    intros H0 Hsilent Hevent.
    assert (∀ h m, trace h m → ∀ k, k ≤ length H → h = take k H → A k m) as Hall.
    { intros h m Htr. induction Htr as [v Hv|h m e m' _ IH Hs]; intros k Hk Heq.
      - destruct k as [|k]; [by apply H0|]. destruct H; simpl in Hk; [lia|done].
      - assert (e = [] ∨ ∃ x, e = [x]) as [->|[x ->]] by (inversion Hs; eauto).
        + eapply Hsilent; [|exact Hs]. apply IH; [done|]. by rewrite app_nil_r in Heq.
        + destruct k as [|k]; [by destruct h|].
          destruct (lookup_lt_is_Some_2 H k) as [y Hy]; [lia|]. rewrite (take_S_r _ _ _ Hy) in Heq.
          apply app_inj_tail in Heq as [Hh ->]. eapply Hevent; [exact Hy| |exact Hs]. apply IH; [lia|done]. }
    intros m Hm. apply (Hall H); [done|done|]. symmetry. apply take_ge. done.
  Qed.

  Lemma goes_silently h m m' : trace h m → step m [] m' → trace h m'.
  Proof. intros Ht Hs. rewrite -(app_nil_r h). by eapply goes. Qed.
End spec.
