target
deploy
.git
